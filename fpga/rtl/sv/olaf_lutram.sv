// Distributed memory with asynchronous reads.
module olaf_lutram #(
  parameter int WIDTH = 32,
  parameter int DEPTH = 16,
  parameter int AW = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
  input  logic             clk,
  input  logic             we,
  input  logic [AW-1:0]    waddr,
  input  logic [WIDTH-1:0] wdata,
  input  logic [AW-1:0]    raddr,
  output logic [WIDTH-1:0] rdata
);
`ifdef SYNTHESIS
  localparam int WORDS = DEPTH;
`else
  localparam int WORDS = 1 << AW;  // as in olaf_ram
`endif
  (* ram_style = "distributed" *) logic [WIDTH-1:0] mem [0:WORDS-1];
`ifndef SYNTHESIS
  initial for (int i = 0; i < WORDS; i++) mem[i] = '0;
`endif
  always_ff @(posedge clk) if (we) mem[waddr] <= wdata;
  assign rdata = mem[raddr];
endmodule
