// Two OpenNIC plugins in series: port 1 of the first sends to port 0 of the second, and port 1 of the second is the
// output. Each plugin has a separate register bus.
module plugins_sim (
  input  logic         clk,
  input  logic         rstn,
  output logic [1:0]   ready,          // the plugins are out of reset

  input  logic [1:0]   write,
  input  logic [1:0]   read,
  input  logic [31:0]  address,
  input  logic [31:0]  data,
  output logic [1:0]   accepted,       // a write or a read address was accepted
  output logic [1:0]   bvalid,
  output logic [1:0]   rvalid,
  output logic [63:0]  rdata,

  output logic [511:0] out_tdata,
  output logic [63:0]  out_tkeep,
  output logic         out_tlast,
  output logic         out_tvalid
);
  logic [1:0] valid_in [0:1], valid_out [0:1], last_in [0:1], last_out [0:1], ready_in [0:1], ready_out [0:1];
  logic [1023:0] data_in [0:1], data_out [0:1];
  logic [127:0]  keep_in [0:1], keep_out [0:1];
  logic [31:0]   size_in [0:1], size_out [0:1], src_out [0:1], dst_out [0:1];
  logic [1:0]    awready, arready;
  assign accepted = awready | arready;

  // The cable is the only input; the other ports receive nothing.
  assign valid_in[0] = '0;
  assign data_in[0] = '0;
  assign keep_in[0] = '0;
  assign last_in[0] = '0;
  assign size_in[0] = '0;
  assign valid_in[1] = {1'b0, valid_out[0][1]};
  assign data_in[1] = {512'b0, data_out[0][1023:512]};
  assign keep_in[1] = {64'b0, keep_out[0][127:64]};
  assign last_in[1] = {1'b0, last_out[0][1]};
  assign size_in[1] = {16'b0, size_out[0][31:16]};
  assign ready_out[0] = {ready_in[1][0], 1'b1};
  assign ready_out[1] = '1;
  assign out_tvalid = valid_out[1][1];
  assign out_tdata = data_out[1][1023:512];
  assign out_tkeep = keep_out[1][127:64];
  assign out_tlast = last_out[1][1];

  for (genvar i = 0; i < 2; i++) begin : card
    /* verilator lint_off PINCONNECTEMPTY */
    olaf_opennic_250mhz #(.SLOTS(8), .CLUSTERS(16), .MAX_BYTES(1500)) plugin (
      .s_axil_awvalid(write[i]), .s_axil_awaddr(address), .s_axil_awready(awready[i]), .s_axil_wvalid(write[i]), .s_axil_wdata(data),
      .s_axil_wready(), .s_axil_bvalid(bvalid[i]), .s_axil_bresp(), .s_axil_bready(1'b1), .s_axil_arvalid(read[i]),
      .s_axil_araddr(address), .s_axil_arready(arready[i]), .s_axil_rvalid(rvalid[i]), .s_axil_rdata(rdata[32*i +: 32]), .s_axil_rresp(),
      .s_axil_rready(1'b1),
      .s_axis_adap_rx_250mhz_tvalid(valid_in[i]), .s_axis_adap_rx_250mhz_tdata(data_in[i]), .s_axis_adap_rx_250mhz_tkeep(keep_in[i]),
      .s_axis_adap_rx_250mhz_tlast(last_in[i]), .s_axis_adap_rx_250mhz_tuser_size(size_in[i]),
      .s_axis_adap_rx_250mhz_tuser_src(32'h0), .s_axis_adap_rx_250mhz_tuser_dst(32'h0), .s_axis_adap_rx_250mhz_tready(ready_in[i]),
      .m_axis_adap_tx_250mhz_tvalid(valid_out[i]), .m_axis_adap_tx_250mhz_tdata(data_out[i]), .m_axis_adap_tx_250mhz_tkeep(keep_out[i]),
      .m_axis_adap_tx_250mhz_tlast(last_out[i]), .m_axis_adap_tx_250mhz_tuser_size(size_out[i]),
      .m_axis_adap_tx_250mhz_tuser_src(src_out[i]), .m_axis_adap_tx_250mhz_tuser_dst(dst_out[i]),
      .m_axis_adap_tx_250mhz_tready(ready_out[i]),
      .mod_rstn(rstn), .mod_rst_done(ready[i]), .axil_aclk(clk), .axis_aclk(clk)
    );
    /* verilator lint_on PINCONNECTEMPTY */
  end

  logic unused;
  assign unused = &{1'b0, src_out[0], src_out[1], dst_out[0], dst_out[1], size_out[1], size_out[0][15:0], valid_out[0][0], valid_out[1][0],
                    last_out[0][0], last_out[1][0], ready_in[0], ready_in[1][1], keep_out[0][63:0], keep_out[1][63:0],
                    data_out[0][511:0], data_out[1][511:0]};
endmodule

// A table in place of VNP4-1. It knows every source: the last byte of the address is the worker, and its lowest bit is
// the cluster.
module olaf_tables (
  input  logic [511:0] first_beat,
  output logic         known,
  output logic [15:0]  cluster,
  output logic [15:0]  worker
);
  assign known = 1'b1;
  assign worker = {8'b0, first_beat[29*8 +: 8]};
  assign cluster = {15'b0, worker[0]};
  logic unused;
  assign unused = ^first_beat;
endmodule
