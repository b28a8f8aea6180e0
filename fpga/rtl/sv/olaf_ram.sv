// Memory with a write port and a read port on one clock. A read in the cycle of a write to the same word returns the old word.
// STYLE selects the kind: olaf_pkg::IN_LUTS, IN_BLOCKS or IN_ULTRA. It is zero initially, as all three kinds are on
// UltraScale+ by default.
module olaf_ram #(
  parameter int WIDTH = 32,
  parameter int DEPTH = 16,
  parameter int AW = DEPTH > 1 ? $clog2(DEPTH) : 1,
  parameter int STYLE = olaf_pkg::IN_BLOCKS
) (
  input  logic             clk,
  input  logic             we,
  input  logic [AW-1:0]    waddr,
  input  logic [WIDTH-1:0] wdata,
  input  logic             re,
  input  logic [AW-1:0]    raddr,
  output logic [WIDTH-1:0] rdata
);
`ifdef SYNTHESIS
  localparam int WORDS = DEPTH;
`else
  localparam int WORDS = 1 << AW;  // size that an address can reach, so that a simulator need not check addresses
`endif
  generate
    if (STYLE == olaf_pkg::IN_ULTRA) begin : g
      (* ram_style = "ultra" *) logic [WIDTH-1:0] mem [0:WORDS-1];
`ifndef SYNTHESIS
      initial for (int i = 0; i < WORDS; i++) mem[i] = '0;
`endif
      always_ff @(posedge clk) begin
        if (re) rdata <= mem[raddr];
        if (we) mem[waddr] <= wdata;
      end
    end else if (STYLE == olaf_pkg::IN_LUTS) begin : g
      (* ram_style = "distributed" *) logic [WIDTH-1:0] mem [0:WORDS-1];
`ifndef SYNTHESIS
      initial for (int i = 0; i < WORDS; i++) mem[i] = '0;
`endif
      always_ff @(posedge clk) begin
        if (re) rdata <= mem[raddr];
        if (we) mem[waddr] <= wdata;
      end
    end else begin : g
      (* ram_style = "block" *) logic [WIDTH-1:0] mem [0:WORDS-1];
`ifndef SYNTHESIS
      initial for (int i = 0; i < WORDS; i++) mem[i] = '0;
`endif
      always_ff @(posedge clk) begin
        if (re) rdata <= mem[raddr];
        if (we) mem[waddr] <= wdata;
      end
    end
  endgenerate
endmodule
