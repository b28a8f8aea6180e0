// The decisions: ring of slots, cluster table and output serialiser (docs/reference/semantics.md, Enqueue and Dequeue). It
// does not move gradients; olaf_lanes and olaf_reader follow its orders.
//
// Departures follow the order of appends, and merges stay in place, so the slots are a ring without a list of free slots.
// The cluster table has the place where each cluster was last appended. An entry is valid only while that place is in the
// waiting range and contains that cluster. So locks and flushes do not write the table, and it is never cleared.
//
// An arrival takes four cycles: T0 reads the table, T1 reads the slot's header, T2 multiplies, T3 decides. Arrivals do not
// overlap, so a decision sees all earlier ones, and two decisions on one slot are four cycles apart, as an addition needs.
module olaf_core #(
  parameter int SLOTS = 8,
  parameter int CLUSTERS = 256,
  parameter int PORTS = 2,           // read ports of the lane memory: with one, merges and the output take turns
  parameter int FREE_ON_START = 1,   // builds one more slot, so that a leaving frame need not occupy one
  parameter int MODEL_CYCLES = 1,    // allows dequeue and merge cycles
  parameter int TABLE_STYLE = olaf_pkg::IN_BLOCKS,
  parameter int HEADER_STYLE = olaf_pkg::IN_LUTS,
  parameter int COUNT_W = 16,
  parameter int REWARD_W = 32,
  parameter int GEN_W = 48,
  parameter int LANES_W = 12,
  parameter int FRAC = 24,           // bits of the rate, which is below 2^7
  parameter int LINES = 141,         // beats of lanes in a slot
  parameter int PHYS = SLOTS + (FREE_ON_START != 0 ? 1 : 0),
  parameter int PW = PHYS > 1 ? $clog2(PHYS) : 1,
  parameter int CW = $clog2(PHYS + 1),
  parameter int LW = PHYS * LINES > 1 ? $clog2(PHYS * LINES) : 1,
  parameter int UW = CLUSTERS > 1 ? $clog2(CLUSTERS) : 1
) (
  input  logic                clk,
  input  logic                rst,
  input  logic                ce,       // a cycle of time passes
  input  logic                run,      // the output's clock advances too; arrivals are decided without it
  input  logic                fluid,    // test only: partial beats do not take whole beats
  input  logic                restart,  // drop outstanding cycles, because a new configuration takes effect
  input  logic                flush,    // discards everything in the queue
  input  logic                forget,   // the same, including the frame that is being decided

  input  logic                cfg_olaf,
  input  logic                cfg_filter,
  input  logic                cfg_free,
  input  logic [REWARD_W-1:0] cfg_threshold,
  input  logic [CW-1:0]       cfg_depth,
  input  logic [FRAC+6:0]     cfg_rate,
  input  logic [7:0]          cfg_overhead,
  input  logic [7:0]          cfg_dequeue,
  input  logic [7:0]          cfg_merge,
  input  logic                admit,    // enabled and not frozen
  input  logic                frozen,

  input  logic                in_valid,
  output logic                in_take,
  input  logic [1:0]          in_verdict,
  input  logic [7:0]          in_beats,
  input  logic [15:0]         in_cluster,
  input  logic [15:0]         in_worker,
  input  logic [LANES_W-1:0]  in_lanes,
  input  logic [REWARD_W-1:0] in_reward,
  input  logic [COUNT_W-1:0]  in_count,
  input  logic [GEN_W-1:0]    in_gen,
  input  logic                in_retransmission,
  input  logic                copy_stall,  // the bypass is blocked, so nothing is decided
  input  logic                out_stall,   // the output is blocked, so the serialiser stops

  // The decision of this cycle, in T3.
  output logic                decided,
  output logic                offered,     // the update reached the engine, so it has a class
  output logic [2:0]          class_,
  output logic [1:0]          copy,
  output logic [PW-1:0]       slot,
  output logic [LW-1:0]       slot_line,   // place of its lanes
  output logic                slot_append,
  output logic [COUNT_W-1:0]  slot_count,
  output logic [REWARD_W-1:0] slot_reward,
  output logic [GEN_W-1:0]    slot_gen,
  output logic                slot_retransmission,
  output logic                slot_saturated,
  output logic                slot_written,
  output logic [COUNT_W-1:0]  discarded,   // updates that a replacement discarded
  output logic [COUNT_W:0]    gained,      // updates in the queue, modulo 2^(COUNT_W+1)
  output logic                collided,
  output logic                reward_saturated,
  output logic                count_saturated,

  // The output's actions in this cycle.
  output logic                locks,       // a frame starts
  output logic [PW-1:0]       lock_slot,
  output logic [LW-1:0]       lock_line,
  output logic [LANES_W-1:0]  lock_lanes,
  output logic                fetches,     // its next beat of lanes is due
  output logic                fetches_last,
  output logic                fin,         // the last bit of the current frame has left
  output logic                cut,         // a flush ended the frame instead
  output logic [PW-1:0]       leaving_slot,
  output logic [UW-1:0]       leaving_cluster,
  output logic [LANES_W-1:0]  leaving_lanes,
  output logic [COUNT_W-1:0]  leaving_count,
  output logic [39:0]         stalled,     // cycles charged to the output
  output logic [39:0]         fin_busy,    // whole cycles of this frame, including the remainder of earlier frames

  output logic                sending,
  output logic                leaving_due, // all its beats have been read
  output logic                idle,
  output logic [PW-1:0]       head,
  output logic [CW-1:0]       waiting,
  output logic                occupies,    // the current frame occupies a slot
  output logic [16:0]         active
);
  localparam int DW = 16 + FRAC;  // bytes of a frame and its overhead, signed 8.24
  localparam int EW = 9 + FRAC;

  function automatic logic [PW-1:0] after(input logic [PW-1:0] p);
    after = 32'(p) == PHYS - 1 ? '0 : p + 1'b1;
  endfunction

  function automatic logic [LW-1:0] after_line(input logic [LW-1:0] p);
    after_line = 32'(p) == (PHYS - 1) * LINES ? '0 : p + LW'(LINES);
  endfunction

  // ---------------------------------------------------------------------------------------------------------- serialiser
  // debt is the amount left to serialise, and to_beat the amount left until the next beat is due, in units of bytes per cycle.
  // Below zero, they are the fraction of a cycle by which the next frame starts early. A header needs no memory port.
  logic signed [DW-1:0] debt, debt_n, total;
  logic signed [EW-1:0] to_beat, to_beat_n;
  logic [7:0]           beats_left;
  logic                 paying;
  logic [39:0]          owed, pay, fin_pay;
  logic                 run_t, due, wanted, blocked, late, step, try_lock, lock_head, pay_done;
  logic                 port_taken, fresh;
  logic signed [DW-1:0] rate_d;
  logic signed [EW-1:0] rate_e;

  assign idle = !sending && !paying;
  assign leaving_due = beats_left == '0;
  assign run_t = ce && run && !frozen;
  assign rate_d = DW'(cfg_rate);
  assign rate_e = EW'(cfg_rate);
  assign debt_n = debt - rate_d;
  assign to_beat_n = to_beat - rate_e;
  assign due = debt_n[DW-1] || debt_n == '0;
  assign wanted = beats_left != '0 && (to_beat_n[EW-1] || to_beat_n == '0);
  assign blocked = wanted && (port_taken || fresh);
  assign step = run_t && sending && !blocked && !out_stall;
  assign late = due && wanted && !fluid;  // a frame cannot end in the cycle in which its last beat is read
  assign fin = step && due && !late;
  assign fetches = step && wanted;
  assign fetches_last = beats_left == 8'd1;
  assign fin_pay = MODEL_CYCLES != 0 ? owed + {32'b0, cfg_dequeue} : '0;
  assign pay_done = run_t && paying && pay == 40'd1;
  assign try_lock = (fin && fin_pay == '0) || pay_done;
  assign lock_head = try_lock && waiting != '0;

  // The state after this cycle's departures, which an arrival sees.
  logic          leaves_1, idle_1, paying_1;
  logic [PW-1:0] head_1, tail;
  logic [LW-1:0] head_line, head_line_1, tail_line;
  logic [CW-1:0] waiting_1, occupied_1;
  logic [15:0]   leaving_id, leaving_cluster_1;
  assign leaving_cluster = leaving_id[UW-1:0];
  assign leaves_1 = lock_head || (sending && !fin);
  assign paying_1 = (fin && fin_pay != '0) || (paying && !pay_done);
  assign idle_1 = !leaves_1 && !paying_1;
  assign head_1 = lock_head ? after(head) : head;
  assign head_line_1 = lock_head ? after_line(head_line) : head_line;
  assign waiting_1 = waiting - {{CW-1{1'b0}}, lock_head};
  assign occupied_1 = waiting_1 + {{CW-1{1'b0}}, leaves_1 && !cfg_free};
  assign leaving_cluster_1 = lock_head ? head_cluster : leaving_id;

  // Whole cycles of the delivered frames: one subtraction per cycle divides while the frame is on the wire.
  logic [DW-1:0] rest, rest_of, rest_n;
  logic [39:0]   busy_of;
  logic          whole;
  assign whole = rest_of >= DW'(cfg_rate);
  assign rest_n = whole ? rest_of - DW'(cfg_rate) : rest_of;
  assign fin_busy = busy_of + {39'b0, whole};
  always_ff @(posedge clk) begin
    if (rst || forget || restart) rest <= '0;
    else if (fin) rest <= rest_n;
    if (locks) begin
      rest_of <= (fin ? rest_n : rest) + total - DW'(cfg_rate);
      busy_of <= 40'd1;
    end else if (step) begin
      rest_of <= rest_n;
      busy_of <= fin_busy;
    end
  end

  // ------------------------------------------------------------------------------------------------------------- pipeline
  logic          t1, t2, t3, start, dce, empties;
  logic [7:0]    gap;
  logic [PW-1:0] place_1, place_2, place_3;
  logic [LW-1:0] line_3;
  assign dce = ce && !copy_stall;
  assign start = in_valid && !t1 && !t2 && !t3 && gap == '0;

  logic [UW-1:0] cluster_index;
  logic          appends;
  assign cluster_index = in_cluster[UW-1:0];
  olaf_ram #(.WIDTH(PW), .DEPTH(CLUSTERS), .STYLE(TABLE_STYLE)) places (
    .clk, .we(appends), .waddr(cluster_index), .wdata(tail), .re(dce && start), .raddr(cluster_index), .rdata(place_1)
  );

  localparam int MW = 35 + LANES_W + REWARD_W + COUNT_W + GEN_W;
  logic [MW-1:0] w_meta;
  logic [15:0]         w_cluster, w_worker;
  logic [LANES_W-1:0]  w_lanes;
  logic [REWARD_W-1:0] w_reward;
  logic [COUNT_W-1:0]  w_count;
  logic [GEN_W-1:0]    w_gen;
  logic                w_alone, w_retransmission, w_saturated;
  // The decision is written one clock later, in time for the next frame's T1.
  logic          put;
  logic [PW-1:0] put_slot;
  logic [MW-1:0] put_meta;
  always_ff @(posedge clk) begin
    put <= slot_written && !rst;
    if (slot_written) begin
      put_slot <= slot;
      put_meta <= {
        in_cluster, in_worker, slot_alone, slot_retransmission, slot_saturated, in_lanes, slot_reward, slot_count, slot_gen
      };
    end
  end
  olaf_ram #(.WIDTH(MW), .DEPTH(PHYS), .STYLE(HEADER_STYLE)) slots (
    .clk, .we(put), .waddr(put_slot), .wdata(put_meta), .re(dce && t1), .raddr(place_1), .rdata(w_meta)
  );
  assign {w_cluster, w_worker, w_alone, w_retransmission, w_saturated, w_lanes, w_reward, w_count, w_gen} = w_meta;

  // T2: products, sums and comparisons with the contents of the place, valid or not.
  logic signed [REWARD_W:0]         reward_sum;
  logic [COUNT_W:0]                 count_sum;
  logic [GEN_W-1:0]                 gen_lead;
  logic signed [REWARD_W+COUNT_W:0] product_3, limit_3;
  logic signed [REWARD_W-1:0]       reward_3, sum_3;
  logic [COUNT_W-1:0]               count_3, count_sum_3;
  logic [GEN_W-1:0]                 gen_3;
  logic ours_3, same_lanes_3, alone_3, reward_over_3, count_over_3, retransmission_3, saturated_3;
  assign reward_sum = $signed({w_reward[REWARD_W-1], w_reward}) + $signed({in_reward[REWARD_W-1], in_reward});
  assign count_sum = {1'b0, w_count} + {1'b0, in_count};
  assign gen_lead = in_gen - w_gen;
  always_ff @(posedge clk) begin
    if (dce) begin
      if (t1) place_2 <= place_1;
      if (t2) begin
        place_3 <= place_2;
        line_3 <= LW'(32'(place_2) * LINES);
        ours_3 <= w_cluster == in_cluster;
        same_lanes_3 <= w_lanes == in_lanes;
        alone_3 <= w_alone && w_worker == in_worker;
        product_3 <= $signed(in_reward) * $signed({1'b0, w_count});
        limit_3 <= $signed(cfg_threshold) * $signed({1'b0, w_count});
        reward_3 <= w_reward;
        count_3 <= w_count;
        reward_over_3 <= reward_sum[REWARD_W] != reward_sum[REWARD_W-1];
        sum_3 <= reward_sum[REWARD_W] == reward_sum[REWARD_W-1] ? reward_sum[REWARD_W-1:0] :
                 {reward_sum[REWARD_W], {REWARD_W-1{!reward_sum[REWARD_W]}}};
        count_over_3 <= count_sum[COUNT_W];
        count_sum_3 <= count_sum[COUNT_W] ? '1 : count_sum[COUNT_W-1:0];
        gen_3 <= gen_lead[GEN_W-1] ? w_gen : in_gen;
        retransmission_3 <= w_retransmission;
        saturated_3 <= w_saturated;
      end
    end
  end

  // T3.
  logic signed [REWARD_W+COUNT_W+1:0] difference, limit;
  logic [CW-1:0] distance;
  logic          slot_alone, better, worse, found, full, merges, starts, near, replaces, blocked_by_leaving;
  assign difference = (REWARD_W+COUNT_W+2)'(product_3) - (REWARD_W+COUNT_W+2)'(reward_3);
  assign limit = (REWARD_W+COUNT_W+2)'(limit_3);
  assign better = difference > limit;
  assign worse = difference < -limit;
  assign distance = place_3 >= head_1 ? CW'(place_3) - CW'(head_1) : CW'(place_3) + CW'(PHYS) - CW'(head_1);
  assign found = ours_3 && distance < waiting_1;
  assign full = occupied_1 >= cfg_depth;
  assign near = leaves_1 && leaving_cluster_1 == in_cluster;

  assign decided = dce && t3;
  assign in_take = decided;
  assign offered = decided && in_verdict == olaf_pkg::IS_UPDATE && admit;
  always_comb begin
    if (!cfg_olaf || !found) class_ = full ? olaf_pkg::DROPPED_FULL : olaf_pkg::APPENDED;
    else if (!same_lanes_3) class_ = olaf_pkg::DROPPED_MISMATCH;
    else if (alone_3) class_ = olaf_pkg::REPLACED;
    else if (cfg_filter && better) class_ = olaf_pkg::REPLACED_REWARD;
    else if (cfg_filter && worse) class_ = olaf_pkg::DROPPED_REWARD;
    else class_ = olaf_pkg::AGGREGATED;
  end
  assign appends = offered && class_ == olaf_pkg::APPENDED;
  assign merges = offered && class_ == olaf_pkg::AGGREGATED;
  assign replaces = offered && (class_ == olaf_pkg::REPLACED || class_ == olaf_pkg::REPLACED_REWARD);
  assign starts = appends && idle_1;
  assign slot_written = appends || merges || replaces;
  assign slot_append = appends;
  assign slot = appends ? tail : place_3;
  assign slot_line = appends ? tail_line : line_3;
  assign slot_alone = !merges;
  assign slot_count = merges ? count_sum_3 : in_count;
  assign slot_reward = merges ? sum_3 : in_reward;
  assign slot_gen = merges ? gen_3 : in_gen;
  assign slot_retransmission = in_retransmission || (merges && retransmission_3);
  assign slot_saturated = merges && (saturated_3 || count_over_3);
  assign discarded = replaces ? count_3 : '0;
  assign gained = !slot_written ? '0 : appends ? {1'b0, in_count} : {1'b0, slot_count} - {1'b0, count_3};
  assign collided = offered && near && !found;
  assign reward_saturated = merges && reward_over_3;
  assign count_saturated = merges && count_over_3;
  assign blocked_by_leaving = in_verdict == olaf_pkg::IS_MALFORMED || (in_verdict == olaf_pkg::IS_UPDATE && !admit);
  always_comb begin
    if (appends || replaces) copy = olaf_pkg::COPY_STORE;
    else if (merges) copy = olaf_pkg::COPY_ADD;
    else if (decided && !offered && !blocked_by_leaving) copy = olaf_pkg::COPY_BYPASS;
    else copy = olaf_pkg::COPY_NONE;
  end

  always_ff @(posedge clk) begin
    if (rst) gap <= '0;
    if (rst || forget) begin
      t1 <= 1'b0;
      t2 <= 1'b0;
      t3 <= 1'b0;
    end else if (dce) begin
      t1 <= start;
      t2 <= t1;
      t3 <= t2;
      // The next decision comes at least four cycles later, after the beats of this frame have been read. If the frame goes
      // around the queue, it comes four cycles after that.
      if (t3) gap <= copy == olaf_pkg::COPY_BYPASS ? in_beats : copy != olaf_pkg::COPY_NONE && in_beats > 8'd4 ? in_beats - 8'd4 : '0;
      else if (gap != '0) gap <= gap - 8'd1;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------- head
  // Properties of a frame that the output needs in the cycle in which it starts.
  logic [LANES_W-1:0] head_lanes;
  logic [15:0]        head_cluster;
  logic [COUNT_W-1:0] head_count;
  logic               head_followed, followed;  // FIFO: a newer update of its cluster waits behind it
  olaf_lutram #(.WIDTH(LANES_W + 16 + COUNT_W), .DEPTH(PHYS)) heads (
    .clk, .we(slot_written), .waddr(slot), .wdata({in_lanes, in_cluster, slot_count}),
    .raddr(head), .rdata({head_lanes, head_cluster, head_count})
  );

  // An append clears its slot's mark in the cycle of the decision and sets the previous place's mark one cycle later.
  logic          mark, mark_q;
  logic [PW-1:0] mark_place;
  olaf_lutram #(.WIDTH(1), .DEPTH(PHYS)) marks (
    .clk, .we(appends || mark), .waddr(appends ? slot : mark_place), .wdata(!appends), .raddr(head), .rdata(mark_q)
  );
  assign head_followed = mark_q || (mark && mark_place == head);
  always_ff @(posedge clk) begin
    if (rst || empties) mark <= 1'b0;
    else begin
      mark <= appends && found;
      if (appends) mark_place <= place_3;
    end
  end

  assign locks = lock_head || starts;
  assign lock_slot = lock_head ? head : slot;
  assign lock_line = lock_head ? head_line : slot_line;
  assign lock_lanes = lock_head ? head_lanes : in_lanes;
  assign total = DW'({{(DW-FRAC-14){1'b0}}, {LANES_W'(lock_lanes), 2'b0} + 14'd64 + {6'b0, cfg_overhead}, {FRAC{1'b0}}});
  assign empties = flush || forget;
  assign cut = empties && (locks || (sending && !fin));
  assign stalled = MODEL_CYCLES == 0 ? {39'b0, run_t && sending && blocked} :
                   {39'b0, run_t && sending && blocked} + (fin ? fin_pay : '0) +
                   ((merges || replaces) && paying_1 ? {32'b0, cfg_merge} : '0);

  always_ff @(posedge clk) begin
    if (rst || empties) begin
      sending <= 1'b0;
      paying <= 1'b0;
      owed <= '0;
      waiting <= '0;
      active <= '0;
      head <= rst ? '0 : appends ? after(tail) : tail;
      head_line <= rst ? '0 : appends ? after_line(tail_line) : tail_line;
      beats_left <= '0;
    end else begin
      if (ce) begin
        sending <= leaves_1 || starts;
        paying <= paying_1;
        head <= starts ? after(head_1) : head_1;
        head_line <= starts ? after_line(head_line_1) : head_line_1;
        waiting <= waiting_1 + {{CW-1{1'b0}}, appends && !starts};
        active <= active - {16'b0, fin && !followed} + {16'b0, appends && !found && !near};
        if (locks) begin
          debt <= total + (lock_head ? (fin ? debt_n : debt) : '0);
          to_beat <= EW'(64 << FRAC) + (lock_head ? EW'(fin ? debt_n : debt) : '0);
          beats_left <= 8'((32'(lock_lanes) + 32'd15) >> 4);
          leaving_slot <= lock_slot;
          leaving_id <= lock_head ? head_cluster : in_cluster;
          leaving_lanes <= lock_lanes;
          leaving_count <= lock_head ? head_count : in_count;
          followed <= lock_head && (head_followed || (appends && leaving_cluster_1 == in_cluster));
        end else begin
          if (step) begin
            debt <= late ? rate_d : debt_n;
            to_beat <= wanted ? to_beat_n + EW'(64 << FRAC) : to_beat_n;
            if (wanted) beats_left <= beats_left - 8'd1;
          end
          if (appends && near) followed <= 1'b1;
        end
        if (MODEL_CYCLES != 0) begin
          owed <= (fin ? '0 : owed) + ((merges || replaces) && !paying_1 ? {32'b0, cfg_merge} : '0);
          pay <= (fin ? fin_pay : run_t && paying ? pay - 40'd1 : pay) + ((merges || replaces) && paying_1 ? {32'b0, cfg_merge} : '0);
        end else pay <= '0;
      end
      if (restart) begin
        paying <= 1'b0;
        owed <= '0;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      tail <= '0;
      tail_line <= '0;
    end else if (appends) begin
      tail <= after(tail);
      tail_line <= after_line(tail_line);
    end
  end
  assign occupies = sending && !cfg_free;

  // -------------------------------------------------------------------------------------------------------- one read port
  // A merge reads its lanes in the cycles after its decision. The output waits for it, and for writes of an update into
  // a slot that it starts to read. The last one can be read five cycles after the decision.
  generate
    if (PORTS == 1) begin : shared
      logic [7:0]    busy;
      logic [2:0]    age;
      logic [PW-1:0] newest;
      always_ff @(posedge clk) begin
        if (rst) begin
          busy <= '0;
          age <= '0;
        end else if (ce && !frozen) begin  // the queue's clock is stopped
          if (merges) busy <= in_beats - 8'd1;
          else if (busy != '0) busy <= busy - 8'd1;
          if (slot_written) begin
            age <= 3'd4;
            newest <= slot;
          end else if (age != '0) age <= age - 3'd1;
        end
      end
      assign port_taken = busy != '0;
      assign fresh = age != '0 && newest == leaving_slot;
    end else begin : separate
      assign port_taken = 1'b0;
      assign fresh = 1'b0;
    end
  endgenerate
endmodule
