// Counters of every cluster, in two memories: arrivals by class, and departures. A row records the clearing after which it
// was counted, so clearing writes no row. After 2^32 clearings, a row that was never written again would count as valid.
module olaf_clusters #(
  parameter int CLUSTERS = 256,
  parameter int STYLE = olaf_pkg::IN_BLOCKS,
  parameter int UW = CLUSTERS > 1 ? $clog2(CLUSTERS) : 1
) (
  input  logic          clk,
  input  logic          rst,
  input  logic          clear,
  input  logic          forget,  // includes reads
  input  logic [47:0]   now,

  input  logic          arrives,
  input  logic [UW-1:0] a_cluster,
  input  logic [2:0]    a_class,
  input  logic          departs,
  input  logic [UW-1:0] d_cluster,
  input  logic [15:0]   d_count,

  input  logic          look,
  input  logic [UW-1:0] look_at,
  output logic          looked,      // the row is available
  output logic [335:0]  row_classes, // 48 bits each, the first class lowest
  output logic [47:0]   row_frames,
  output logic [47:0]   row_updates,
  output logic [47:0]   row_last
);
  logic [31:0] epoch;
  always_ff @(posedge clk) begin
    if (rst) epoch <= '0;
    else if (clear) epoch <= epoch + 32'd1;
  end

  logic looks, looks_1;
  assign looks = look && !arrives && !departs && !a_1 && !a_2 && !d_1 && !looks_1 && !looked;
  always_ff @(posedge clk) begin
    looks_1 <= looks && !rst;
    looked <= looks_1 && !rst;
  end

  // Arrivals are four cycles apart: each is read, counted and written before the next.
  logic          a_1, a_2;
  logic [UW-1:0] a_cluster_1;
  logic [2:0]    a_class_1;
  logic [31:0]   a_epoch, a_epoch_1;
  logic [335:0]  a_row, a_new;
  olaf_ram #(.WIDTH(368), .DEPTH(CLUSTERS), .STYLE(STYLE)) arrivals (
    .clk, .we(a_2), .waddr(a_cluster_1), .wdata({a_epoch_1, a_new}), .re(arrives || looks), .raddr(arrives ? a_cluster : look_at),
    .rdata({a_epoch, a_row})
  );
  always_ff @(posedge clk) begin
    a_1 <= arrives && !rst;
    a_2 <= a_1 && !rst;
    if (arrives) begin
      a_cluster_1 <= a_cluster;
      a_class_1 <= a_class;
    end
    if (arrives || looks) a_epoch_1 <= epoch;
    if (a_1)
      for (int i = 0; i < 7; i++)
        a_new[48*i +: 48] <= (a_epoch == a_epoch_1 ? a_row[48*i +: 48] : '0) + {47'b0, 32'(a_class_1) == i};
    if (rst || forget) row_classes <= '0;
    else if (looks_1) row_classes <= a_epoch == a_epoch_1 ? a_row : '0;
  end

  // Departures can follow each other immediately, so the row written last is kept in a register.
  logic          d_1, d_2;
  logic [UW-1:0] d_cluster_1, d_cluster_2;
  logic [15:0]   d_count_1;
  logic [47:0]   d_now_1;
  logic [31:0]   d_epoch, d_epoch_1, d_epoch_2;
  logic [47:0]   d_last, d_updates, d_frames, updates, frames, updates_2, frames_2;
  logic          d_again;
  olaf_ram #(.WIDTH(176), .DEPTH(CLUSTERS), .STYLE(STYLE)) departures (
    .clk, .we(d_1), .waddr(d_cluster_1), .wdata({d_epoch_1, d_now_1, updates, frames}), .re(departs || looks), .raddr(departs ? d_cluster : look_at),
    .rdata({d_epoch, d_last, d_updates, d_frames})
  );
  assign d_again = d_2 && d_cluster_2 == d_cluster_1 && d_epoch_2 == d_epoch_1;
  assign updates = (d_again ? updates_2 : d_epoch == d_epoch_1 ? d_updates : '0) + {32'b0, d_count_1};
  assign frames = (d_again ? frames_2 : d_epoch == d_epoch_1 ? d_frames : '0) + 48'd1;
  always_ff @(posedge clk) begin
    d_1 <= departs && !rst;
    d_2 <= d_1 && !rst;
    d_cluster_2 <= d_cluster_1;
    d_epoch_2 <= d_epoch_1;
    updates_2 <= updates;
    frames_2 <= frames;
    if (departs) begin
      d_cluster_1 <= d_cluster;
      d_count_1 <= d_count;
      d_now_1 <= now;
    end
    if (departs || looks) d_epoch_1 <= epoch;
    if (rst || forget) {row_last, row_updates, row_frames} <= '0;
    else if (looks_1) {row_last, row_updates, row_frames} <= d_epoch == d_epoch_1 ? {d_last, d_updates, d_frames} : '0;
  end
endmodule
