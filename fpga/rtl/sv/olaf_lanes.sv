// The gradients: the memory of all slots, and the copier that moves a frame's beats from the input into it, or adds them to
// its contents: 16 lanes per cycle, saturating. A beat is read, added and written in four cycles; one beat enters per cycle.
//
// With two read ports there are two memories, and copier and output never collide. With one, the copier is olaf_pkg::SKEW
// cycles behind the decision, like the output's reads, and olaf_core ensures that both never read in the same cycle.
module olaf_lanes #(
  parameter int PORTS = 2,
  parameter int DEPTH = 1269,  // beats of lanes in all slots
  parameter int STYLE = olaf_pkg::IN_BLOCKS,
  parameter int BA = 9,
  parameter int LW = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
  input  logic          clk,
  input  logic          rst,
  input  logic          ce,

  input  logic [1:0]    copy,  // the decision of this cycle
  input  logic [LW-1:0] line,
  input  logic [BA-1:0] base,
  input  logic [7:0]    beats,
  input  logic [15:0]   bytes,
  input  logic [15:0]   src,
  input  logic [15:0]   dst,
  output logic          copy_stall,

  output logic          rd_en,
  output logic [BA-1:0] rd_addr,
  input  logic [511:0]  rd_data,

  input  logic          fetch,  // data two cycles later
  input  logic [LW-1:0] fetch_line,
  output logic [511:0]  fetch_data,

  output logic [4:0]    saturated,  // lanes, in this clock

  output logic [511:0]  m_tdata,
  output logic [63:0]   m_tkeep,
  output logic          m_tlast,
  output logic          m_tvalid,
  input  logic          m_tready,
  output logic [15:0]   m_tuser_size,
  output logic [15:0]   m_tuser_src,
  output logic [15:0]   m_tuser_dst
);
  localparam int ORDER = 2 + LW + BA + 8 + 48;

  // --------------------------------------------------------------------------------------------------------------- orders
  logic [ORDER-1:0] order, order_now;
  assign order = {copy, line, base, beats, bytes, src, dst};
  generate
    if (PORTS == 1) begin : later
      logic [ORDER-1:0] wait_1, wait_2, wait_3, wait_4;
      always_ff @(posedge clk) begin
        if (rst) begin
          wait_1[ORDER-1 -: 2] <= olaf_pkg::COPY_NONE;
          wait_2[ORDER-1 -: 2] <= olaf_pkg::COPY_NONE;
          wait_3[ORDER-1 -: 2] <= olaf_pkg::COPY_NONE;
          wait_4[ORDER-1 -: 2] <= olaf_pkg::COPY_NONE;
        end else if (ce) begin
          wait_1 <= order;
          wait_2 <= wait_1;
          wait_3 <= wait_2;
          wait_4 <= wait_3;
        end
      end
      assign order_now = wait_4;
    end else begin : at_once
      assign order_now = order;
    end
  endgenerate

  logic [1:0]    now_copy;
  logic [LW-1:0] now_line;
  logic [BA-1:0] now_base;
  logic [7:0]    now_beats;
  logic [47:0]   now_user;
  assign {now_copy, now_line, now_base, now_beats, now_user} = order_now;

  logic [1:0]    mode;
  logic [7:0]    left;
  logic [LW-1:0] at;
  logic [BA-1:0] from;
  logic [47:0]   user;
  logic          issue, adds;
  assign issue = ce && left != '0 && !copy_stall;
  assign adds = issue && mode == olaf_pkg::COPY_ADD;
  assign rd_en = issue;
  assign rd_addr = from;
  always_ff @(posedge clk) begin
    if (rst) left <= '0;
    else if (ce && now_copy != olaf_pkg::COPY_NONE) begin
      mode <= now_copy;
      at <= now_line;
      user <= now_user;
      if (now_copy == olaf_pkg::COPY_BYPASS) begin
        from <= now_base;
        left <= now_beats;
      end else begin  // the first beat is the header
        from <= now_base + 1'b1;
        left <= now_beats - 8'd1;
      end
    end else if (issue) begin
      from <= from + 1'b1;
      at <= at + 1'b1;
      left <= left - 8'd1;
    end
  end

  // --------------------------------------------------------------------------------------------------- read, add and write
  logic          valid_1, valid_2, last_1, last_2, write;
  logic [1:0]    mode_1, mode_2;
  logic [LW-1:0] at_1, at_2, at_3;
  logic [47:0]   user_1, user_2;
  logic [511:0]  old, sum;
  logic          bypass_push;
  logic [15:0]   over;
  always_ff @(posedge clk) begin
    logic [32:0] lane;
    if (rst) begin
      valid_1 <= 1'b0;
      valid_2 <= 1'b0;
      write <= 1'b0;
    end else if (ce) begin
      valid_1 <= issue;
      valid_2 <= valid_1;
      write <= valid_2 && mode_2 != olaf_pkg::COPY_BYPASS;
    end
    if (ce) begin
      if (issue) begin
        mode_1 <= mode;
        at_1 <= at;
        last_1 <= left == 8'd1;
        user_1 <= user;
      end
      if (valid_1) begin
        mode_2 <= mode_1;
        at_2 <= at_1;
        last_2 <= last_1;
        user_2 <= user_1;
      end
      if (valid_2) begin
        at_3 <= at_2;
        if (mode_2 == olaf_pkg::COPY_ADD)
          for (int i = 0; i < 16; i++) begin
            lane = add(rd_data[32*i +: 32], old[32*i +: 32]);
            over[i] <= lane[32] && (!last_2 || user_2[37:34] == '0 || i < 32'(user_2[37:34]));
            sum[32*i +: 32] <= lane[31:0];
          end
        else begin
          over <= '0;
          sum <= rd_data;
        end
      end
    end
    saturated <= ce && write && over != '0 ? ones(over) : '0;
  end

  function automatic logic [4:0] ones(input logic [15:0] v);
    begin
      ones = '0;
      for (int i = 0; i < 16; i++) ones = ones + {4'b0, v[i]};
    end
  endfunction

  // Lanes are big-endian on the wire. A sum overflows if its sign differs from that of both addends. The top bit of the result
  // reports that the lane saturated; it does not count behind the frame's last lane, for which the last beat's lanes are given.
  function automatic logic [32:0] add(input logic [31:0] x, input logic [31:0] y);
    logic [31:0] a, b, r;
    logic        o;
    begin
      a = {x[7:0], x[15:8], x[23:16], x[31:24]};
      b = {y[7:0], y[15:8], y[23:16], y[31:24]};
      r = a + b;
      o = a[31] == b[31] && r[31] != a[31];
      if (o) r = {a[31], {31{!a[31]}}};
      add = {o, r[7:0], r[15:8], r[23:16], r[31:24]};
    end
  endfunction

  // --------------------------------------------------------------------------------------------------------------- memory
  logic [511:0] read_q;
  logic         read_1;
  generate
    if (PORTS == 1) begin : one
      logic either;
      assign either = adds || (ce && fetch);
      olaf_ram #(.WIDTH(512), .DEPTH(DEPTH), .STYLE(STYLE)) memory (
        .clk, .we(ce && write), .waddr(at_3), .wdata(sum), .re(either), .raddr(adds ? at : fetch_line), .rdata(read_q)
      );
      always_ff @(posedge clk) begin
        if (ce) begin
          read_1 <= either;
          if (read_1) old <= read_q;
        end
      end
      assign fetch_data = old;
    end else begin : two
      logic [511:0] fetch_q;
      logic         fetch_1;
      olaf_ram #(.WIDTH(512), .DEPTH(DEPTH), .STYLE(STYLE)) memory (
        .clk, .we(ce && write), .waddr(at_3), .wdata(sum), .re(adds), .raddr(at), .rdata(read_q)
      );
      olaf_ram #(.WIDTH(512), .DEPTH(DEPTH), .STYLE(STYLE)) copy_of_it (
        .clk, .we(ce && write), .waddr(at_3), .wdata(sum), .re(ce && fetch), .raddr(fetch_line), .rdata(fetch_q)
      );
      always_ff @(posedge clk) begin
        if (ce) begin
          read_1 <= adds;
          if (read_1) old <= read_q;
          fetch_1 <= fetch;
          if (fetch_1) fetch_data <= fetch_q;
        end
      end
    end
  endgenerate

  // ------------------------------------------------------------------------------------------------------ around the queue
  localparam int HELD = 16;
  logic [3:0] head, tail;
  logic [4:0] held;
  logic       pop;
  assign bypass_push = ce && valid_2 && mode_2 == olaf_pkg::COPY_BYPASS;
  assign m_tvalid = held != '0;
  assign pop = ce && m_tvalid && m_tready;
  assign copy_stall = left != '0 && mode == olaf_pkg::COPY_BYPASS && 32'(held) > HELD - 4;
  (* ram_style = "distributed" *) logic [511:0] bypassed [0:HELD-1];
  (* ram_style = "distributed" *) logic [48:0]  users [0:HELD-1];
  always_ff @(posedge clk) begin
    if (bypass_push) begin
      bypassed[tail] <= rd_data;
      users[tail] <= {user_2, last_2};
    end
  end
  assign m_tdata = bypassed[head];
  assign {m_tuser_size, m_tuser_src, m_tuser_dst, m_tlast} = users[head];
  assign m_tkeep = m_tlast && m_tuser_size[5:0] != '0 ? ~(64'hffff_ffff_ffff_ffff << m_tuser_size[5:0]) : '1;
  always_ff @(posedge clk) begin
    if (rst) begin
      head <= '0;
      tail <= '0;
      held <= '0;
    end else begin
      if (bypass_push) tail <= tail + 1'b1;
      if (pop) head <= head + 1'b1;
      held <= held + {4'b0, bypass_push} - {4'b0, pop};
    end
  end
endmodule
