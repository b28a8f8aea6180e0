// The top module that the harness clocks: the box, with a register behind every input, so that setting an input causes
// no recomputation. An input takes effect in the next clock. VNP4-1 takes one cycle: the harness sees the generator's
// beat on m_axis_gen and identifies its sender in time for the register that passes the beat to s_axis. Tests inject
// their own frames into that register while the generator is idle.
module olaf_sim #(
  parameter int SLOTS = 64,
  parameter int CLUSTERS = 1024,
  parameter int MAX_BYTES = 9036,
  parameter int PORTS = 2,
  parameter int DESCRIPTORS = 32768,
  parameter int FLOWS = 1024,
  parameter logic [31:0] BUILD_HASH = '0,
  parameter int PW = $clog2(SLOTS + 1)
) (
  input  logic         clk,
  input  logic         next_rst,
  input  logic         next_ce,
  input  logic         next_run,
  input  logic         next_fluid,
  input  logic         next_ready,
  input  logic         next_bypass_ready,

  input  logic         next_write,
  input  logic         next_read,
  input  logic [19:0]  next_address,
  input  logic [31:0]  next_data,
  output logic         s_axil_bvalid,
  output logic [1:0]   s_axil_bresp,
  output logic         s_axil_rvalid,
  output logic [1:0]   s_axil_rresp,
  output logic [31:0]  s_axil_rdata,

  input  logic         inject,         // the harness offers a beat
  input  logic [511:0] inject_tdata,
  input  logic [63:0]  inject_tkeep,
  input  logic         inject_tlast,
  input  logic         known,          // the frame's sender is known
  input  logic [15:0]  cluster,
  input  logic [15:0]  worker,
  output logic         taken,          // an injected beat would be taken in this clock

  output logic [511:0] m_axis_tdata,
  output logic [63:0]  m_axis_tkeep,
  output logic         m_axis_tlast,
  output logic         m_axis_tvalid,
  output logic [15:0]  m_axis_tuser_size,
  output logic [15:0]  m_axis_tuser_src,
  output logic [15:0]  m_axis_tuser_dst,
  output logic         m_axis_tuser_abort,
  output logic         m_axis_tuser_saturated,
  output logic [47:0]  m_axis_tuser_appended,

  output logic [511:0] m_axis_bypass_tdata,
  output logic [63:0]  m_axis_bypass_tkeep,
  output logic         m_axis_bypass_tlast,
  output logic         m_axis_bypass_tvalid,
  output logic [15:0]  m_axis_bypass_tuser_size,
  output logic [15:0]  m_axis_bypass_tuser_src,
  output logic [15:0]  m_axis_bypass_tuser_dst,

  output logic [511:0] m_axis_gen_tdata,
  output logic         m_axis_gen_tvalid,
  output logic         m_axis_gen_first,  // the beat is the first of a frame
  output logic [63:0]  m_axis_gen_tkeep,
  output logic         m_axis_gen_tlast,
  output logic         m_axis_gen_wire,   // the frame leaves here and does not enter s_axis

  // The provenance log: the decision on each update, and the slot of each departing frame. An append or a replacement
  // starts a slot's list of contributors; an aggregation extends it.
  output logic         log_decided,
  output logic [2:0]   log_class,
  output logic [PW-1:0] log_slot,
  output logic [15:0]  log_cluster,
  output logic [15:0]  log_worker,
  output logic [31:0]  log_sequence,
  output logic [47:0]  log_generation,
  output logic         log_departed,
  output logic [PW-1:0] log_departed_slot,

  // Outputs for tests only; a card leaves them unconnected.
  output logic [63:0]  test_cycles,
  output logic         test_decided,
  output logic         test_offered,
  output logic [2:0]   test_class,
  output logic         test_fin,
  output logic         test_idle,
  output logic         test_resting   // nothing is in progress anywhere
);
  logic rst, ce, run, fluid, m_axis_tready, m_axis_bypass_tready, write, read;
  logic [19:0] address;
  logic [31:0] data;
  always_ff @(posedge clk) begin
    rst <= next_rst;
    ce <= next_ce;
    run <= next_run;
    fluid <= next_fluid;
    m_axis_tready <= next_ready;
    m_axis_bypass_tready <= next_bypass_ready;
    write <= next_write;
    read <= next_read;
    if (next_write || next_read) begin
      address <= next_address;
      data <= next_data;
    end
  end

  // VNP4-1.
  logic [511:0] s_axis_tdata;
  logic [63:0]  s_axis_tkeep;
  logic         s_axis_tlast, s_axis_tvalid, s_axis_tready, s_axis_tuser_known, m_axis_gen_tready, moves, loops;
  logic [15:0]  s_axis_tuser_src, s_axis_tuser_dst, s_axis_tuser_cluster, s_axis_tuser_worker, m_axis_gen_tuser_src, m_axis_gen_tuser_dst;
  assign moves = !s_axis_tvalid || s_axis_tready;
  assign loops = m_axis_gen_tvalid && !m_axis_gen_wire;
  assign taken = ce && moves && !loops;
  assign m_axis_gen_tready = moves || m_axis_gen_wire;
  always_ff @(posedge clk) begin
    if (rst) begin
      s_axis_tvalid <= 1'b0;
      m_axis_gen_first <= 1'b1;
    end else if (ce && moves) begin
      s_axis_tvalid <= loops || inject;
      if (loops) m_axis_gen_first <= m_axis_gen_tlast;
    end
    if (ce && moves && loops) begin
      s_axis_tdata <= m_axis_gen_tdata;
      s_axis_tkeep <= m_axis_gen_tkeep;
      s_axis_tlast <= m_axis_gen_tlast;
      s_axis_tuser_src <= m_axis_gen_tuser_src;
      s_axis_tuser_dst <= m_axis_gen_tuser_dst;
    end else if (taken && inject) begin
      s_axis_tdata <= inject_tdata;
      s_axis_tkeep <= inject_tkeep;
      s_axis_tlast <= inject_tlast;
      s_axis_tuser_src <= '0;
      s_axis_tuser_dst <= '0;
    end
    if (ce && moves) begin
      s_axis_tuser_known <= known;
      s_axis_tuser_cluster <= cluster;
      s_axis_tuser_worker <= worker;
    end
  end

  /* verilator lint_off PINCONNECTEMPTY */
  olaf_box #(
    .SLOTS(SLOTS), .CLUSTERS(CLUSTERS), .MAX_BYTES(MAX_BYTES), .PORTS(PORTS), .DESCRIPTORS(DESCRIPTORS), .FLOWS(FLOWS),
    .BUILD_HASH(BUILD_HASH)
  ) box (
    .s_axil_awaddr(address), .s_axil_awvalid(write), .s_axil_awready(), .s_axil_wdata(data), .s_axil_wstrb(4'hf),
    .s_axil_wvalid(write), .s_axil_wready(), .s_axil_bready(1'b1), .s_axil_araddr(address), .s_axil_arvalid(read),
    .s_axil_arready(), .s_axil_rready(1'b1), .m_axis_gen_tuser_size(), .status_occupancy(), .status_active(), .status_slots(),
    .*
  );
  /* verilator lint_on PINCONNECTEMPTY */
endmodule
