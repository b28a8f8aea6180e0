// Properties of olaf_core that must hold for every input. The core is built narrow, its inputs are free, and a shadow
// model tracks the contents of its slots. 'make formal' proves the properties to a bounded depth and then for all
// times, by induction with the assertions under HELP. The proof must also find the faults planted for it
// (formal/faults).
module olaf_formal (
  input logic       clk,
  input logic       rst,
  input logic       run,
  input logic       flush,
  input logic       olaf,
  input logic       filter,
  input logic       free,
  input logic [1:0] depth,      // 1 or 2 slots
  input logic       fast,       // 64 bytes per cycle, else 32
  input logic       valid,
  input logic       update,     // else the frame bypasses the queue
  input logic       cluster,
  input logic       worker,
  input logic       long,       // 16 lanes, else none
  input logic [1:0] reward,
  input logic       copy_stall,
`ifdef HELP
  // Internal signals of the core, connected by prove.sh.
  input logic        peek_paying, peek_t1, peek_t2, peek_t3, peek_ours_3, peek_put,
  input logic [1:0]  peek_tail, peek_place_1, peek_place_2, peek_place_3, peek_put_slot, peek_place_of_0, peek_place_of_1,
  input logic [2:0]  peek_count_3, peek_count_sum_3,
  input logic [49:0] peek_put_meta, peek_w_meta, peek_slot_0, peek_slot_1, peek_slot_2,
  input logic [24:0] peek_head_0, peek_head_1, peek_head_2,
`endif
  input logic       out_stall
);
  localparam int SLOTS = 2, PHYS = 3;

  // A frame stays on the input until it is taken. The configuration changes only during reset.
  logic       held, past;
  logic [5:0] was, is;
  logic [5:0] cfg, cfg_was;
  assign is = {update, cluster, worker, long, reward};
  assign cfg = {olaf, filter, free, depth, fast};
  logic take;
  initial past = 1'b0;
  always_ff @(posedge clk) begin
    held <= !rst && valid && !take;
    was <= is;
    cfg_was <= cfg;
    past <= 1'b1;
  end
  always_comb begin
    assume (!held || (valid && is == was));
    assume (rst || !past || cfg == cfg_was);
    assume (depth >= 2'd1 && depth <= 2'd2);
    assume (past || rst);  // the first cycle is a reset
  end

  logic       decided, offered, slot_append, slot_written, locks, fin, cut, sending, occupies, idle;
  logic [2:0] class_, slot_count, leaving_count, discarded;
  logic [1:0] slot, lock_slot, leaving_slot, head, waiting;
  logic [3:0] gained;
  olaf_core #(
    .SLOTS(SLOTS), .CLUSTERS(2), .PORTS(1), .FREE_ON_START(1), .MODEL_CYCLES(0), .COUNT_W(3), .REWARD_W(4), .GEN_W(2), .LANES_W(6),
    .FRAC(0), .LINES(1)
  ) core (
    .clk, .rst, .ce(1'b1), .run, .fluid(1'b0), .restart(1'b0), .flush, .forget(1'b0), .cfg_olaf(olaf), .cfg_filter(filter),
    .cfg_free(free), .cfg_threshold(4'd1), .cfg_depth(depth), .cfg_rate(fast ? 7'd64 : 7'd32), .cfg_overhead(8'd0),
    .cfg_dequeue(8'd0), .cfg_merge(8'd0), .admit(1'b1), .frozen(1'b0), .in_valid(valid), .in_take(take),
    .in_verdict(update ? olaf_pkg::IS_UPDATE : olaf_pkg::IS_BYPASSED), .in_beats(long ? 8'd2 : 8'd1), .in_cluster({15'b0, cluster}),
    .in_worker({15'b0, worker}), .in_lanes(long ? 6'd16 : 6'd0), .in_reward({2'b0, reward}), .in_count(3'd1), .in_gen(2'd0),
    .in_retransmission(1'b0), .copy_stall, .out_stall, .decided, .offered, .class_, .slot, .slot_append, .slot_count, .slot_written,
    .discarded, .gained, .locks, .lock_slot, .fin, .cut, .leaving_slot, .leaving_count, .sending, .occupies, .idle, .head, .waiting
  );

  // The shadow model: which slots are waiting, their order and contents, and the slot that is leaving.
  logic [PHYS-1:0] waits;
  logic            of [0:PHYS-1];
  logic [2:0]      count [0:PHYS-1];
  logic            leaves;
  logic [1:0]      leaver, next_lock, next_append;
  logic [3:0]      inside, total;   // updates modulo 16: counted from gained and fin, and summed over the slots
  logic [2:0]      frames;
  function automatic logic [1:0] after(input logic [1:0] p);
    after = p == 2'(PHYS - 1) ? 2'd0 : p + 2'd1;
  endfunction
  always_ff @(posedge clk) begin
    if (rst) begin
      waits <= '0;
      leaves <= 1'b0;
      next_lock <= '0;
      next_append <= '0;
      inside <= '0;
    end else begin
      if (flush) begin
        waits <= '0;
        leaves <= 1'b0;
        inside <= '0;
        next_lock <= slot_append ? after(next_append) : next_append;
      end else begin
        if (slot_written && slot_append) waits[slot] <= 1'b1;
        if (locks) waits[lock_slot] <= 1'b0;
        leaves <= locks || (leaves && !fin);
        if (locks) next_lock <= after(next_lock);
        inside <= inside + gained - (fin ? {1'b0, leaving_count} : 4'd0);
      end
      if (slot_written && slot_append) next_append <= after(next_append);
    end
    if (locks) leaver <= lock_slot;
    if (slot_written) begin
      of[slot] <= cluster;
      count[slot] <= slot_count;
    end
  end
  always_comb begin
    total = leaves ? {1'b0, count[leaver]} : 4'd0;
    frames = {2'b0, leaves};
    for (int i = 0; i < PHYS; i++)
      if (waits[i]) begin
        total = total + {1'b0, count[i]};
        frames = frames + 3'd1;
      end
  end

  always_comb
    if (!rst) begin
      conserved_frames: assert (frames == {1'b0, waiting} + {2'b0, sending});
      conserved_updates: assert (inside == total);
      within_depth: assert ({1'b0, waiting} + {2'b0, occupies} <= {1'b0, depth});
      if (olaf) begin
        one_waiting_a: assert (!(waits[0] && waits[1] && of[0] == of[1]));
        one_waiting_b: assert (!(waits[0] && waits[2] && of[0] == of[2]));
        one_waiting_c: assert (!(waits[1] && waits[2] && of[1] == of[2]));
      end
      if (slot_written && !slot_append) begin
        merge_waits: assert (waits[slot] && of[slot] == cluster);
        merge_not_leaving: assert (!(leaves && leaver == slot) && !(locks && lock_slot == slot));
      end
      if (slot_append) append_in_order: assert (slot_written && slot == next_append && !waits[slot] && !(leaves && leaver == slot && !fin));
      if (locks) lock_in_order: assert (lock_slot == next_lock);
      if (fin) fin_leaves: assert (leaves && leaver == leaving_slot);
    end

`ifdef HELP
  // Assertions that make those above inductive: they relate the shadow model to the core's state.
  logic [1:0]  place_of, ring, before;
  logic [49:0] slots [0:3], lies [0:3];   // the memory's contents before and after the write in progress
  logic [24:0] heads [0:3];
  function automatic logic [1:0] far(input logic [1:0] from, input logic [1:0] to);
    far = to >= from ? to - from : to + 2'(PHYS) - from;
  endfunction
  always_comb begin
    slots[0] = peek_slot_0;
    slots[1] = peek_slot_1;
    slots[2] = peek_slot_2;
    slots[3] = '0;
    heads[0] = peek_head_0;
    heads[1] = peek_head_1;
    heads[2] = peek_head_2;
    heads[3] = '0;
    for (int i = 0; i < 4; i++) lies[i] = peek_put && 32'(peek_put_slot) == i ? peek_put_meta : slots[i];
    place_of = cluster ? peek_place_of_1 : peek_place_of_0;
    ring = far(head, peek_tail);
    before = head == 2'd0 ? 2'(PHYS - 1) : head - 2'd1;

    // The cluster table and the tail start as zeros, and only slot numbers are written to them.
    assume (!rst || (peek_place_of_0 < 2'(PHYS) && peek_place_of_1 < 2'(PHYS) && peek_tail < 2'(PHYS)));
    help_places: assert (rst || (peek_place_of_0 < 2'(PHYS) && peek_place_of_1 < 2'(PHYS)));
    if (!rst) begin
      // The ring.
      help_head: assert (head == next_lock && peek_tail == next_append && head < 2'(PHYS) && peek_tail < 2'(PHYS));
      help_waiting: assert (waiting <= 2'd2 && ring == (waiting == 2'(PHYS) ? 2'd0 : waiting));
      for (int i = 0; i < PHYS; i++) assert (waits[i] == (far(head, 2'(i)) < waiting));
      help_idle: assert (!peek_paying && (sending || waiting == 2'd0));
      help_leaver: assert (leaves == sending && (!leaves || (leaver == leaving_slot && leaver == before && leaving_count == count[leaver])));
      // The memories' entries for waiting slots.
      for (int i = 0; i < PHYS; i++)
        if (waits[i]) begin
          assert (heads[i][18:3] == {15'b0, of[i]} && heads[i][2:0] == count[i]);
          assert (lies[i][49:34] == {15'b0, of[i]} && lies[i][4:2] == count[i]);
          if (olaf) assert ((of[i] ? peek_place_of_1 : peek_place_of_0) == 2'(i));
        end
      // The decision in progress.
      help_once: assert (!(peek_t1 && peek_t2) && !(peek_t1 && peek_t3) && !(peek_t2 && peek_t3));
      if (peek_t1 || peek_t2 || peek_t3) help_held: assert (held && !peek_put);
      if (peek_t1) help_1: assert (peek_place_1 == place_of);
      if (peek_t2) help_2: assert (peek_place_2 == place_of && peek_w_meta == slots[place_of]);
      if (peek_t3) begin
        help_3: assert (peek_place_3 == place_of && peek_ours_3 == (slots[place_of][49:34] == {15'b0, cluster}));
        help_count: assert (peek_count_3 == slots[place_of][4:2] && peek_count_sum_3 == (&peek_count_3 ? 3'd7 : peek_count_3 + 3'd1));
      end
    end
  end
`endif
endmodule
