// OlafQueue as a plugin for OpenNIC's 250 MHz user box, between the two network ports. Frames received on port 0 are
// queued and leave on port 1. Frames received on port 1 leave on port 0 unchanged. The generator's frames enter the
// queue like those from port 0 or, if generator.control.wire is set, leave on port 1 for a queue on another card. The
// host's first function neither receives nor sends through the queue. Instantiate the plugin in
// user_plugin_250mhz_inst.vh; its port names are the shell's.
//
// It has been compiled with Verilator only: never with Vivado, and it has not run on a card.
module olaf_opennic_250mhz #(
  parameter int SLOTS = 64,
  parameter int CLUSTERS = 1024,
  parameter int MAX_BYTES = 9036,
  parameter int PORTS = 2,
  parameter logic [31:0] BUILD_HASH = '0,
  parameter logic [63:0] BUILD_TIME = '0
) (
  input  logic         s_axil_awvalid,
  input  logic [31:0]  s_axil_awaddr,
  output logic         s_axil_awready,
  input  logic         s_axil_wvalid,
  input  logic [31:0]  s_axil_wdata,
  output logic         s_axil_wready,
  output logic         s_axil_bvalid,
  output logic [1:0]   s_axil_bresp,
  input  logic         s_axil_bready,
  input  logic         s_axil_arvalid,
  input  logic [31:0]  s_axil_araddr,
  output logic         s_axil_arready,
  output logic         s_axil_rvalid,
  output logic [31:0]  s_axil_rdata,
  output logic [1:0]   s_axil_rresp,
  input  logic         s_axil_rready,

  // Streams from and to the adapters of the two network ports. Only this side of the adapters has a ready signal for
  // received frames; the MAC has none.
  input  logic [1:0]    s_axis_adap_rx_250mhz_tvalid,
  input  logic [1023:0] s_axis_adap_rx_250mhz_tdata,
  input  logic [127:0]  s_axis_adap_rx_250mhz_tkeep,
  input  logic [1:0]    s_axis_adap_rx_250mhz_tlast,
  input  logic [31:0]   s_axis_adap_rx_250mhz_tuser_size,
  input  logic [31:0]   s_axis_adap_rx_250mhz_tuser_src,
  input  logic [31:0]   s_axis_adap_rx_250mhz_tuser_dst,
  output logic [1:0]    s_axis_adap_rx_250mhz_tready,
  output logic [1:0]    m_axis_adap_tx_250mhz_tvalid,
  output logic [1023:0] m_axis_adap_tx_250mhz_tdata,
  output logic [127:0]  m_axis_adap_tx_250mhz_tkeep,
  output logic [1:0]    m_axis_adap_tx_250mhz_tlast,
  output logic [31:0]   m_axis_adap_tx_250mhz_tuser_size,
  output logic [31:0]   m_axis_adap_tx_250mhz_tuser_src,
  output logic [31:0]   m_axis_adap_tx_250mhz_tuser_dst,
  input  logic [1:0]    m_axis_adap_tx_250mhz_tready,

  input  logic         mod_rstn,
  output logic         mod_rst_done,
  input  logic         axil_aclk,
  input  logic         axis_aclk
);
  localparam logic [15:0] PORT_0 = 16'h0040, PORT_1 = 16'h0080;  // tuser_dst of the network ports

  // Reset lasts long enough to empty every pipeline in both clock domains.
  logic [7:0] held;
  logic       rst_1, rst, rstn_axil, rstn_axil_1;
  assign mod_rst_done = held == '1;
  always_ff @(posedge axis_aclk) begin
    if (!mod_rstn) held <= '0;
    else if (held != '1) held <= held + 8'd1;
    rst_1 <= held != '1;
    rst <= rst_1;
  end
  always_ff @(posedge axil_aclk) begin
    rstn_axil_1 <= !rst;
    rstn_axil <= rstn_axil_1;
  end

  logic [19:0] addr;
  logic [31:0] wdata, rdata;
  logic        awvalid, awready, wvalid, wready, bvalid, arvalid, arready, rvalid;
  logic [1:0]  bresp, rresp;
  olaf_axil_cdc cdc (
    .s_clk(axil_aclk), .s_rstn(rstn_axil), .s_awaddr(s_axil_awaddr[19:0]), .s_awvalid(s_axil_awvalid), .s_awready(s_axil_awready),
    .s_wdata(s_axil_wdata), .s_wvalid(s_axil_wvalid), .s_wready(s_axil_wready), .s_bresp(s_axil_bresp), .s_bvalid(s_axil_bvalid),
    .s_bready(s_axil_bready), .s_araddr(s_axil_araddr[19:0]), .s_arvalid(s_axil_arvalid), .s_arready(s_axil_arready),
    .s_rdata(s_axil_rdata), .s_rresp(s_axil_rresp), .s_rvalid(s_axil_rvalid), .s_rready(s_axil_rready),
    .m_clk(axis_aclk), .m_rstn(!rst), .m_addr(addr), .m_wdata(wdata), .m_awvalid(awvalid), .m_awready(awready), .m_wvalid(wvalid),
    .m_wready(wready), .m_bvalid(bvalid), .m_bresp(bresp), .m_arvalid(arvalid), .m_arready(arready), .m_rvalid(rvalid),
    .m_rresp(rresp), .m_rdata(rdata)
  );

  // The box's outputs: queue, bypass and generator.
  logic [2:0]   valid, last, ready;
  logic [511:0] data [0:2];
  logic [63:0]  keep [0:2];
  logic [15:0]  size [0:2];
  logic [15:0]  gen_src;

  // The generator and port 0 share the box's input, frame by frame. The port has priority, because its adapter has
  // little buffer space. Once a frame's first beat has been offered, the input is reserved for that frame.
  logic         wire_out, in_open, in_owner, in_gen, in_valid, in_ready, in_last;
  logic [511:0] in_data;
  logic [63:0]  in_keep;
  logic [15:0]  in_src;
  logic         gen_valid, gen_ready;
  assign in_gen = in_open ? in_owner : !s_axis_adap_rx_250mhz_tvalid[0];
  assign in_valid = in_gen ? gen_valid && !wire_out : s_axis_adap_rx_250mhz_tvalid[0];
  assign in_data = in_gen ? data[2] : s_axis_adap_rx_250mhz_tdata[511:0];
  assign in_keep = in_gen ? keep[2] : s_axis_adap_rx_250mhz_tkeep[63:0];
  assign in_last = in_gen ? last[2] : s_axis_adap_rx_250mhz_tlast[0];
  assign in_src = in_gen ? gen_src : s_axis_adap_rx_250mhz_tuser_src[15:0];
  assign s_axis_adap_rx_250mhz_tready[0] = in_ready && !in_gen;
  assign gen_ready = wire_out ? ready[2] : in_ready && in_gen;
  always_ff @(posedge axis_aclk) begin
    if (rst) in_open <= 1'b0;
    else if (in_valid) begin
      in_open <= !(in_ready && in_last);
      in_owner <= in_gen;
    end
  end

  logic        known;
  logic [15:0] cluster, worker;
  olaf_tables vnp4_1 (.first_beat(in_data), .known, .cluster, .worker);

  // The queue, the bypass and a generator that sends to the wire share port 1, frame by frame. They have priority in
  // this order, so a generator's frame begins only when the other two have nothing to send.
  assign valid[2] = gen_valid && wire_out;
  logic [1:0]   owner, next_owner;
  logic         open;
  always_comb begin
    next_owner = open ? owner : valid[0] ? 2'd0 : valid[1] ? 2'd1 : 2'd2;
    ready = '0;
    ready[next_owner] = m_axis_adap_tx_250mhz_tready[1];
  end
  always_ff @(posedge axis_aclk) begin
    if (rst) open <= 1'b0;
    else if (valid[next_owner]) begin
      open <= !(m_axis_adap_tx_250mhz_tready[1] && last[next_owner]);
      owner <= next_owner;
    end
  end
  assign m_axis_adap_tx_250mhz_tvalid[1] = valid[next_owner];
  assign m_axis_adap_tx_250mhz_tdata[1023:512] = data[next_owner];
  assign m_axis_adap_tx_250mhz_tkeep[127:64] = keep[next_owner];
  assign m_axis_adap_tx_250mhz_tlast[1] = last[next_owner];
  assign m_axis_adap_tx_250mhz_tuser_size[31:16] = size[next_owner];
  assign m_axis_adap_tx_250mhz_tuser_src[31:16] = PORT_0;
  assign m_axis_adap_tx_250mhz_tuser_dst[31:16] = PORT_1;

  /* verilator lint_off PINCONNECTEMPTY */
  olaf_box #(
    .SLOTS(SLOTS), .CLUSTERS(CLUSTERS), .MAX_BYTES(MAX_BYTES), .PORTS(PORTS), .MODEL_CYCLES(0), .PROVENANCE(0),
    .BUILD_HASH(BUILD_HASH), .BUILD_TIME(BUILD_TIME)
  ) box (
    .clk(axis_aclk), .rst, .ce(1'b1), .run(1'b1), .fluid(1'b0),
    .s_axil_awaddr(addr), .s_axil_awvalid(awvalid), .s_axil_awready(awready), .s_axil_wdata(wdata), .s_axil_wstrb(4'hf),
    .s_axil_wvalid(wvalid), .s_axil_wready(wready), .s_axil_bresp(bresp), .s_axil_bvalid(bvalid), .s_axil_bready(1'b1),
    .s_axil_araddr(addr), .s_axil_arvalid(arvalid), .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(rresp),
    .s_axil_rvalid(rvalid), .s_axil_rready(1'b1),
    .s_axis_tdata(in_data), .s_axis_tkeep(in_keep), .s_axis_tlast(in_last), .s_axis_tvalid(in_valid), .s_axis_tready(in_ready),
    .s_axis_tuser_src(in_src),
    .s_axis_tuser_dst(PORT_1), .s_axis_tuser_known(known), .s_axis_tuser_cluster(cluster), .s_axis_tuser_worker(worker),
    .m_axis_tdata(data[0]), .m_axis_tkeep(keep[0]), .m_axis_tlast(last[0]), .m_axis_tvalid(valid[0]), .m_axis_tready(ready[0]),
    .m_axis_tuser_size(size[0]), .m_axis_tuser_src(), .m_axis_tuser_dst(), .m_axis_tuser_abort(), .m_axis_tuser_saturated(),
    .m_axis_tuser_appended(),
    .m_axis_bypass_tdata(data[1]), .m_axis_bypass_tkeep(keep[1]), .m_axis_bypass_tlast(last[1]), .m_axis_bypass_tvalid(valid[1]),
    .m_axis_bypass_tready(ready[1]), .m_axis_bypass_tuser_size(size[1]), .m_axis_bypass_tuser_src(), .m_axis_bypass_tuser_dst(),
    .m_axis_gen_tdata(data[2]), .m_axis_gen_tkeep(keep[2]), .m_axis_gen_tlast(last[2]), .m_axis_gen_tvalid(gen_valid),
    .m_axis_gen_tready(gen_ready), .m_axis_gen_tuser_size(size[2]), .m_axis_gen_tuser_src(gen_src), .m_axis_gen_tuser_dst(),
    .m_axis_gen_wire(wire_out),
    .status_occupancy(), .status_active(), .status_slots(),
    .log_decided(), .log_class(), .log_slot(), .log_cluster(), .log_worker(), .log_sequence(), .log_generation(), .log_departed(),
    .log_departed_slot(), .test_cycles(), .test_decided(), .test_offered(), .test_class(), .test_fin(), .test_idle(), .test_resting()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // The return path, from port 1 to port 0.
  assign m_axis_adap_tx_250mhz_tvalid[0] = s_axis_adap_rx_250mhz_tvalid[1];
  assign m_axis_adap_tx_250mhz_tdata[511:0] = s_axis_adap_rx_250mhz_tdata[1023:512];
  assign m_axis_adap_tx_250mhz_tkeep[63:0] = s_axis_adap_rx_250mhz_tkeep[127:64];
  assign m_axis_adap_tx_250mhz_tlast[0] = s_axis_adap_rx_250mhz_tlast[1];
  assign m_axis_adap_tx_250mhz_tuser_size[15:0] = s_axis_adap_rx_250mhz_tuser_size[31:16];
  assign m_axis_adap_tx_250mhz_tuser_src[15:0] = s_axis_adap_rx_250mhz_tuser_src[31:16];
  assign m_axis_adap_tx_250mhz_tuser_dst[15:0] = PORT_0;
  assign s_axis_adap_rx_250mhz_tready[1] = m_axis_adap_tx_250mhz_tready[0];

  logic unused;
  assign unused = &{1'b0, s_axil_awaddr[31:20], s_axil_araddr[31:20], s_axis_adap_rx_250mhz_tuser_size[15:0], s_axis_adap_rx_250mhz_tuser_dst};
endmodule
