// Words that the modules share. The wire format is that of docs/reference/semantics.md; byte 0 of a frame is tdata[7:0].
package olaf_pkg;
  // What became of an arrival, numbered as the counters of the register map.
  localparam logic [2:0] APPENDED = 3'd0;
  localparam logic [2:0] AGGREGATED = 3'd1;
  localparam logic [2:0] REPLACED = 3'd2;
  localparam logic [2:0] REPLACED_REWARD = 3'd3;
  localparam logic [2:0] DROPPED_FULL = 3'd4;
  localparam logic [2:0] DROPPED_REWARD = 3'd5;
  localparam logic [2:0] DROPPED_MISMATCH = 3'd6;

  // What a frame turned out to be.
  localparam logic [1:0] IS_UPDATE = 2'd0;     // of a worker that the tables know
  localparam logic [1:0] IS_BYPASSED = 2'd1;   // no OLAF update, or nobody knows its source
  localparam logic [1:0] IS_MALFORMED = 2'd2;  // claims to be OLAF and is broken, or is longer than the build takes
  localparam logic [1:0] IS_BEYOND = 2'd3;     // an update of a cluster that the build does not have: bypassed

  // What the copier does with the beats of a frame.
  localparam logic [1:0] COPY_NONE = 2'd0;
  localparam logic [1:0] COPY_STORE = 2'd1;   // lanes into the slot
  localparam logic [1:0] COPY_ADD = 2'd2;     // lanes onto those of the slot
  localparam logic [1:0] COPY_BYPASS = 2'd3;  // the whole frame around the queue

  // Bytes of the first beat that a frame keeps from its newest contributor: MACs, EtherType, IPv4, UDP ports and length.
  localparam int OUTER_BITS = 320;

  // What a memory is made of.
  localparam int IN_LUTS = 0;
  localparam int IN_BLOCKS = 1;
  localparam int IN_ULTRA = 2;

  // The copier runs four cycles behind the decision where it shares the memory's read port, else the reader does.
  localparam int SKEW = 4;
endpackage
