// One counter and its latched copy. Increments in the cycle of a command count before the command acts.
module olaf_counter #(
  parameter int W = 1  // width of the increment per cycle
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         snapshot,
  input  logic         clear,
  input  logic [W-1:0] gain,
  output logic [63:0]  latched
);
  logic [63:0] count;
  always_ff @(posedge clk) begin
    if (rst || clear) count <= '0;
    else if (gain != '0) count <= count + {{64-W{1'b0}}, gain};
    if (rst) latched <= '0;
    else if (snapshot) latched <= count + {{64-W{1'b0}}, gain};
  end
endmodule
