// AXI-Lite bridge from OpenNIC's 125 MHz register clock to the box's 250 MHz clock, for one access at a time. One
// toggle signals the request and another the response, each through two flip-flops. Address and data are stable
// meanwhile.
module olaf_axil_cdc (
  input  logic        s_clk,
  input  logic        s_rstn,
  input  logic [19:0] s_awaddr,
  input  logic        s_awvalid,
  output logic        s_awready,
  input  logic [31:0] s_wdata,
  input  logic        s_wvalid,
  output logic        s_wready,
  output logic [1:0]  s_bresp,
  output logic        s_bvalid,
  input  logic        s_bready,
  input  logic [19:0] s_araddr,
  input  logic        s_arvalid,
  output logic        s_arready,
  output logic [31:0] s_rdata,
  output logic [1:0]  s_rresp,
  output logic        s_rvalid,
  input  logic        s_rready,

  input  logic        m_clk,
  input  logic        m_rstn,
  output logic [19:0] m_addr,
  output logic [31:0] m_wdata,
  output logic        m_awvalid,
  input  logic        m_awready,
  output logic        m_wvalid,
  input  logic        m_wready,
  input  logic        m_bvalid,
  input  logic [1:0]  m_bresp,
  output logic        m_arvalid,
  input  logic        m_arready,
  input  logic        m_rvalid,
  input  logic [1:0]  m_rresp,
  input  logic [31:0] m_rdata
);
  // The register clock's side.
  logic        asked, writes, answered_s1, answered_s2, answered_seen, answering;
  logic        answered;
  logic [19:0] address;
  logic [31:0] data, result;
  logic [1:0]  response;
  logic        free, take_write, take_read;
  assign free = asked == answered_seen && !answering && asked == answered_s2;
  assign take_write = free && s_awvalid && s_wvalid;
  assign take_read = free && s_arvalid && !take_write;
  assign s_awready = take_write;
  assign s_wready = take_write;
  assign s_arready = take_read;
  assign s_bvalid = answering && writes;
  assign s_rvalid = answering && !writes;
  assign s_bresp = response;
  assign s_rresp = response;
  assign s_rdata = result;
  always_ff @(posedge s_clk) begin
    answered_s1 <= answered;
    answered_s2 <= answered_s1;
    if (!s_rstn) begin
      asked <= 1'b0;
      answered_seen <= 1'b0;
      answering <= 1'b0;
    end else begin
      if (take_write || take_read) begin
        asked <= !asked;
        writes <= take_write;
        address <= take_write ? s_awaddr : s_araddr;
        data <= s_wdata;
      end
      if (answered_s2 != answered_seen) begin
        answered_seen <= answered_s2;
        answering <= 1'b1;
      end else if (answering && (writes ? s_bready : s_rready)) answering <= 1'b0;
    end
  end

  // The box clock's side.
  logic asked_1, asked_2, asked_seen, busy;
  assign m_addr = address;
  assign m_wdata = data;
  always_ff @(posedge m_clk) begin
    asked_1 <= asked;
    asked_2 <= asked_1;
    if (!m_rstn) begin
      asked_1 <= 1'b0;
      asked_2 <= 1'b0;
      asked_seen <= 1'b0;
      answered <= 1'b0;
      busy <= 1'b0;
      m_awvalid <= 1'b0;
      m_wvalid <= 1'b0;
      m_arvalid <= 1'b0;
    end else if (!busy) begin
      if (asked_2 != asked_seen) begin
        asked_seen <= asked_2;
        busy <= 1'b1;
        m_awvalid <= writes;
        m_wvalid <= writes;
        m_arvalid <= !writes;
      end
    end else begin
      if (m_awready) m_awvalid <= 1'b0;
      if (m_wready) m_wvalid <= 1'b0;
      if (m_arready) m_arvalid <= 1'b0;
      if (m_bvalid || m_rvalid) begin
        result <= m_rdata;
        response <= m_bvalid ? m_bresp : m_rresp;
        answered <= !answered;
        busy <= 1'b0;
      end
    end
  end
endmodule
