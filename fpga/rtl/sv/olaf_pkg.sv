// Definitions that the modules share. docs/reference/semantics.md has the wire format; byte 0 of a frame is tdata[7:0].
package olaf_pkg;
  // The class of an arrival, numbered like the counters of the register map.
  localparam logic [2:0] APPENDED = 3'd0;
  localparam logic [2:0] AGGREGATED = 3'd1;
  localparam logic [2:0] REPLACED = 3'd2;
  localparam logic [2:0] REPLACED_REWARD = 3'd3;
  localparam logic [2:0] DROPPED_FULL = 3'd4;
  localparam logic [2:0] DROPPED_REWARD = 3'd5;
  localparam logic [2:0] DROPPED_MISMATCH = 3'd6;

  // The kind of a frame.
  localparam logic [1:0] IS_UPDATE = 2'd0;     // from a worker that is in the tables
  localparam logic [1:0] IS_BYPASSED = 2'd1;   // not an OLAF update, or from an unknown source
  localparam logic [1:0] IS_MALFORMED = 2'd2;  // an OLAF frame that is broken, or longer than the build allows
  localparam logic [1:0] IS_BEYOND = 2'd3;     // an update for a cluster that the build does not have; bypassed

  // The copier's action for the beats of a frame.
  localparam logic [1:0] COPY_NONE = 2'd0;
  localparam logic [1:0] COPY_STORE = 2'd1;   // copy the lanes into the slot
  localparam logic [1:0] COPY_ADD = 2'd2;     // add the lanes to those of the slot
  localparam logic [1:0] COPY_BYPASS = 2'd3;  // pass the whole frame around the queue

  // Bytes of the first beat that a frame takes from its newest contribution: MACs, EtherType, IPv4, UDP ports and length.
  localparam int OUTER_BITS = 320;

  // Kinds of memory.
  localparam int IN_LUTS = 0;
  localparam int IN_BLOCKS = 1;
  localparam int IN_ULTRA = 2;

  // The copier is four cycles behind the decision if it shares the memory's read port; otherwise the reader is.
  localparam int SKEW = 4;
endpackage
