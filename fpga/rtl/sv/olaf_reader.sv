// The output path: headers of all slots, and the frames that leave. A beat is on the bus seven cycles after olaf_core asked
// for it. The last beat of a frame waits until the serialiser has finished the frame, and is out six cycles later.
//
// A frame that a flush discards has begun to leave and cannot be cut in the middle of the bus: its next beat is its last, and
// carries tuser_abort.
module olaf_reader #(
  parameter int PHYS = 9,
  parameter int HEADER_STYLE = olaf_pkg::IN_LUTS,
  parameter int PW = PHYS > 1 ? $clog2(PHYS) : 1,
  parameter int LW = 11
) (
  input  logic          clk,
  input  logic          rst,
  input  logic          ce,
  input  logic [47:0]   now,

  // An update is stored in a slot.
  input  logic          w_en,
  input  logic          w_append,
  input  logic [PW-1:0] w_slot,
  input  logic [319:0]  w_outer,
  input  logic [31:0]   w_seq,
  input  logic [15:0]   w_cluster,
  input  logic [15:0]   w_worker,
  input  logic [11:0]   w_lanes,
  input  logic [31:0]   w_reward,
  input  logic [15:0]   w_count,
  input  logic [47:0]   w_gen,
  input  logic          w_retransmission,
  input  logic          w_saturated,
  input  logic [15:0]   w_src,
  input  logic [15:0]   w_dst,

  // The output's actions.
  input  logic          locks,
  input  logic [PW-1:0] lock_slot,
  input  logic [LW-1:0] lock_line,
  input  logic          lock_empty,  // the frame has no lanes
  input  logic          fetches,
  input  logic          fetches_last,
  input  logic          fin,
  input  logic          cut,
  input  logic          leaving_due,
  output logic          out_stall,

  output logic          fetch,
  output logic [LW-1:0] fetch_line,
  input  logic [511:0]  fetch_data,

  // The inspector.
  input  logic          inspect,
  input  logic [PW-1:0] inspect_slot,
  output logic          inspected,   // the answer is available
  output logic [31:0]   i_seq,
  output logic [15:0]   i_cluster,
  output logic [15:0]   i_worker,
  output logic [11:0]   i_lanes,
  output logic [31:0]   i_reward,
  output logic [15:0]   i_count,
  output logic [47:0]   i_gen,
  output logic          i_retransmission,
  output logic          i_saturated,
  output logic [47:0]   i_appended,

  output logic [511:0]  m_tdata,
  output logic [63:0]   m_tkeep,
  output logic          m_tlast,
  output logic          m_tvalid,
  input  logic          m_tready,
  output logic [15:0]   m_tuser_size,
  output logic [15:0]   m_tuser_src,
  output logic [15:0]   m_tuser_dst,
  output logic          m_tuser_abort,      // with tlast
  output logic          m_tuser_saturated,  // its count
  output logic [47:0]   m_tuser_appended    // when its slot was filled
);
  // --------------------------------------------------------------------------------------------------------------- orders
  // order_1 is the request of the previous cycle: a header from its slot, a beat of lanes from its line, or the end of a frame
  // that is cut.
  logic          valid_1, header_1, tail_1, dummy_1;
  logic [PW-1:0] slot_1;
  logic [LW-1:0] line, line_1;
  logic          late;  // a header that arrived with the last beat of the previous frame, only in tests
  logic [PW-1:0] late_slot;
  logic          late_tail;
  always_ff @(posedge clk) begin
    if (rst) begin
      valid_1 <= 1'b0;
      late <= 1'b0;
    end else begin
      if (ce) begin
        valid_1 <= fetches || locks || late;
        header_1 <= !fetches;
        tail_1 <= fetches ? fetches_last : late ? late_tail : lock_empty;
        dummy_1 <= 1'b0;
        slot_1 <= late ? late_slot : lock_slot;
        line_1 <= line;
        if (locks) line <= lock_line;
        else if (fetches) line <= line + 1'b1;
        late <= fetches && locks;
        late_slot <= lock_slot;
        late_tail <= lock_empty;
      end
      if (cut) begin
        if (ce ? fetches || locks : valid_1 && !leaving_due) tail_1 <= 1'b1;
        else if (!leaving_due) begin
          valid_1 <= 1'b1;
          header_1 <= 1'b0;
          tail_1 <= 1'b1;
          dummy_1 <= 1'b1;
        end
      end
    end
  end

  logic [4:0]    valid;  // stages 2 to 6
  logic [4:0]    header, tail;
  logic [2:0]    dummy;
  logic [LW-1:0] line_2, line_3, line_4;
  always_ff @(posedge clk) begin
    if (rst) valid <= '0;
    else if (ce) begin
      valid <= {valid[3:0], valid_1};
      header <= {header[3:0], header_1};
      tail <= {tail[3:0], tail_1};
      dummy <= {dummy[1:0], dummy_1};
      line_2 <= line_1;
      line_3 <= line_2;
      line_4 <= line_3;
    end
  end
  assign fetch = valid[2] && !header[2] && !dummy[2];
  assign fetch_line = line_4;

  // -------------------------------------------------------------------------------------------------------------- headers
  // An update is written one clock after the decision, and a header is read two clocks after its frame was locked: after that
  // write, and before the slot can contain another frame. The header waits in a register until its turn.
  localparam int HW = 526;
  logic [HW-1:0] h, put_header;
  logic [47:0]   h_appended, put_now;
  logic          put, put_append, read, reads, looks, looked, seen;
  logic [PW-1:0] put_slot, read_slot;
  assign reads = ce && valid_1 && header_1;
  assign looks = inspect && !reads && !read && !seen && !looked && !inspected;
  always_ff @(posedge clk) begin
    put <= w_en && !rst;
    if (w_en) begin
      put_append <= w_append;
      put_slot <= w_slot;
      put_now <= now;
      put_header <= {
        w_outer, w_seq, w_cluster, w_worker, w_lanes, w_reward, w_count, w_gen, w_retransmission, w_saturated, w_src, w_dst
      };
    end
    read <= reads && !rst;
    read_slot <= slot_1;
  end
  olaf_ram #(.WIDTH(HW), .DEPTH(PHYS), .STYLE(HEADER_STYLE)) headers (
    .clk, .we(put), .waddr(put_slot), .wdata(put_header), .re(read || looks), .raddr(read ? read_slot : inspect_slot), .rdata(h)
  );
  olaf_ram #(.WIDTH(48), .DEPTH(PHYS), .STYLE(HEADER_STYLE)) appends (
    .clk, .we(put && put_append), .waddr(put_slot), .wdata(put_now), .re(read || looks), .raddr(read ? read_slot : inspect_slot),
    .rdata(h_appended)
  );
  logic [319:0] h_outer;
  logic [31:0]  h_seq, h_reward;
  logic [15:0]  h_cluster, h_worker, h_count, h_src, h_dst;
  logic [11:0]  h_lanes;
  logic [47:0]  h_gen;
  logic         h_retransmission, h_saturated;
  assign {h_outer, h_seq, h_cluster, h_worker, h_lanes, h_reward, h_count, h_gen, h_retransmission, h_saturated, h_src, h_dst} = h;

  logic [2:0]   into_composed, from_composed;
  always_ff @(posedge clk) begin
    if (rst) begin
      looked <= 1'b0;
      seen <= 1'b0;
      inspected <= 1'b0;
      into_composed <= '0;
      from_composed <= '0;
    end else begin
      seen <= read;
      looked <= looks;
      inspected <= looked;
      if (seen) into_composed <= into_composed + 1'b1;
      if (push && header[4]) from_composed <= from_composed + 1'b1;
    end
    if (looked) begin
      i_seq <= h_seq;
      i_cluster <= h_cluster;
      i_worker <= h_worker;
      i_lanes <= h_lanes;
      i_reward <= h_reward;
      i_count <= h_count;
      i_gen <= h_gen;
      i_retransmission <= h_retransmission;
      i_saturated <= h_saturated;
      i_appended <= h_appended;
    end
  end
  (* ram_style = "distributed" *) logic [511:0] composed [0:7];
  always_ff @(posedge clk) begin
    if (seen) composed[into_composed] <= {
      h_reward[7:0], h_reward[15:8], h_reward[23:16], h_reward[31:24],
      h_gen[7:0], h_gen[15:8], h_gen[23:16], h_gen[31:24], h_gen[39:32], h_gen[47:40],
      h_count[7:0], h_count[15:8],
      h_seq[7:0], h_seq[15:8], h_seq[23:16], h_seq[31:24],
      h_worker[7:0], h_worker[15:8], h_cluster[7:0], h_cluster[15:8],
      6'b010100, h_retransmission, h_count > 16'd1, 8'h4f,
      16'h0000, h_outer
    };
  end

  // --------------------------------------------------------------------------------------------------------------- output
  localparam int HELD = 32;
  logic [4:0] into, from, users_into, users_from;
  logic [5:0] held;
  logic       push, pop, ends;
  assign push = ce && valid[4];
  assign pop = ce && m_tvalid && m_tready;
  (* ram_style = "distributed" *) logic [511:0] beats [0:HELD-1];
  (* ram_style = "distributed" *) logic         lasts [0:HELD-1];
  (* ram_style = "distributed" *) logic [96:0]  users [0:HELD-1];
  always_ff @(posedge clk) begin
    if (push) begin
      beats[into] <= header[4] ? composed[from_composed] : fetch_data;
      lasts[into] <= tail[4];
    end
    if (seen) users[users_into] <= {h_appended, h_saturated, {2'b0, h_lanes, 2'b0} + 16'd64, h_src, h_dst};
  end
  assign m_tdata = beats[from];
  assign ends = lasts[from];
  assign {m_tuser_appended, m_tuser_saturated, m_tuser_size, m_tuser_src, m_tuser_dst} = users[users_from];
  // Room for everything that may be in progress when the serialiser stops.
  assign out_stall = 32'(held) > HELD - 10;

  // Frames end in order. In a cycle at most one frame ends normally and one is cut, and the cut one is later.
  logic [4:0] over, aborted;  // stages 1 to 5
  logic [5:0] ends_into, ends_from;
  logic       end_over, end_aborted, half, ended, by_abort;
  olaf_lutram #(.WIDTH(2), .DEPTH(64)) ends_of_frames (
    .clk, .we(ce && (over[4] || aborted[4])), .waddr(ends_into), .wdata({over[4], aborted[4]}), .raddr(ends_from),
    .rdata({end_over, end_aborted})
  );
  assign ended = ends_into != ends_from;
  assign by_abort = half || !end_over;
  always_ff @(posedge clk) begin
    if (rst) begin
      into <= '0;
      from <= '0;
      users_into <= '0;
      users_from <= '0;
      held <= '0;
      over <= '0;
      aborted <= '0;
      ends_into <= '0;
      ends_from <= '0;
      half <= 1'b0;
    end else begin
      if (ce) begin
        over <= {over[3:0], fin};
        aborted <= {aborted[3:0], cut};
        if (over[4] || aborted[4]) ends_into <= ends_into + 1'b1;
      end else if (cut) aborted[0] <= 1'b1;
      if (push) into <= into + 1'b1;
      if (seen) users_into <= users_into + 1'b1;
      if (pop) begin
        from <= from + 1'b1;
        if (ends) begin
          users_from <= users_from + 1'b1;
          if (end_over && end_aborted && !half) half <= 1'b1;
          else begin
            half <= 1'b0;
            ends_from <= ends_from + 1'b1;
          end
        end
      end
      held <= held + {5'b0, push} - {5'b0, pop};
    end
  end
  assign m_tvalid = held != '0 && (!ends || ended);
  assign m_tlast = ends;
  assign m_tuser_abort = ends && by_abort;
  assign m_tkeep = ends && m_tuser_size[5:0] != '0 ? ~(64'hffff_ffff_ffff_ffff << m_tuser_size[5:0]) : '1;
endmodule
