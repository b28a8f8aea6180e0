// The queue's counters and their latched copies (docs/reference/registers.md, queue, from 0x200).
module olaf_counters #(
  parameter int CW = 4
) (
  input  logic        clk,
  input  logic        rst,      // sets everything to zero, including the latched copies
  input  logic        ce,       // device time advances
  input  logic        snapshot,
  input  logic        clear,
  input  logic        flush,
  input  logic [63:0] cycles,

  input  logic        offered,
  input  logic [2:0]  class_,
  input  logic [13:0] bytes,
  input  logic [15:0] discarded,
  input  logic [16:0] gained,
  input  logic        collided,
  input  logic        reward_saturated,
  input  logic        count_saturated,
  input  logic [4:0]  lanes_saturated,
  input  logic        bypassed,
  input  logic        malformed,
  input  logic        misidentified,
  input  logic        lost,
  input  logic        fin,
  input  logic [13:0] fin_bytes,
  input  logic [15:0] fin_count,
  input  logic [39:0] fin_busy,
  input  logic [39:0] stalled,
  input  logic [CW-1:0] occupancy,

  input  logic        look,
  input  logic [11:0] select,   // offset of a counter in the block
  output logic [63:0] value,    // one clock later
  output logic [CW-1:0] peak
);
  logic [6:0] is;
  assign is = offered ? 7'd1 << class_ : '0;

  // The contents of the queue, including the leaving frame, and their counts.
  logic [CW:0] held, held_n;
  logic [31:0] held_sum, held_sum_n;
  assign held_n = held + {{CW{1'b0}}, is[0]} - {{CW{1'b0}}, fin};
  assign held_sum_n = held_sum + {{15{gained[16]}}, gained} - (fin ? {16'b0, fin_count} : '0);
  always_ff @(posedge clk) begin
    if (rst || flush) begin
      held <= '0;
      held_sum <= '0;
    end else begin
      held <= held_n;
      held_sum <= held_sum_n;
    end
  end

  logic [63:0] l_in;
  olaf_counter #(.W(1)) c_in (.clk, .rst, .snapshot, .clear, .gain(offered), .latched(l_in));
  logic [63:0] l_in_bytes;
  olaf_counter #(.W(14)) c_in_bytes (.clk, .rst, .snapshot, .clear, .gain(offered ? bytes : '0), .latched(l_in_bytes));
  logic [63:0] l_appended;
  olaf_counter #(.W(1)) c_appended (.clk, .rst, .snapshot, .clear, .gain(is[0]), .latched(l_appended));
  logic [63:0] l_aggregated;
  olaf_counter #(.W(1)) c_aggregated (.clk, .rst, .snapshot, .clear, .gain(is[1]), .latched(l_aggregated));
  logic [63:0] l_replaced;
  olaf_counter #(.W(1)) c_replaced (.clk, .rst, .snapshot, .clear, .gain(is[2]), .latched(l_replaced));
  logic [63:0] l_replaced_reward;
  olaf_counter #(.W(1)) c_replaced_reward (.clk, .rst, .snapshot, .clear, .gain(is[3]), .latched(l_replaced_reward));
  logic [63:0] l_dropped_full;
  olaf_counter #(.W(1)) c_dropped_full (.clk, .rst, .snapshot, .clear, .gain(is[4]), .latched(l_dropped_full));
  logic [63:0] l_dropped_reward;
  olaf_counter #(.W(1)) c_dropped_reward (.clk, .rst, .snapshot, .clear, .gain(is[5]), .latched(l_dropped_reward));
  logic [63:0] l_dropped_mismatch;
  olaf_counter #(.W(1)) c_dropped_mismatch (.clk, .rst, .snapshot, .clear, .gain(is[6]), .latched(l_dropped_mismatch));
  logic [63:0] l_delivered_frames;
  olaf_counter #(.W(1)) c_delivered_frames (.clk, .rst, .snapshot, .clear, .gain(fin), .latched(l_delivered_frames));
  logic [63:0] l_delivered_bytes;
  olaf_counter #(.W(14)) c_delivered_bytes (.clk, .rst, .snapshot, .clear, .gain(fin ? fin_bytes : '0), .latched(l_delivered_bytes));
  logic [63:0] l_delivered_updates;
  olaf_counter #(.W(16)) c_delivered_updates (.clk, .rst, .snapshot, .clear, .gain(fin ? fin_count : '0), .latched(l_delivered_updates));
  logic [63:0] l_flushed_frames;
  olaf_counter #(.W(CW + 1)) c_flushed_frames (.clk, .rst, .snapshot, .clear, .gain(flush ? held_n : '0), .latched(l_flushed_frames));
  logic [63:0] l_flushed_updates;
  olaf_counter #(.W(32)) c_flushed_updates (.clk, .rst, .snapshot, .clear, .gain(flush ? held_sum_n : '0), .latched(l_flushed_updates));
  logic [63:0] l_discarded_updates;
  olaf_counter #(.W(16)) c_discarded_updates (.clk, .rst, .snapshot, .clear, .gain(discarded), .latched(l_discarded_updates));
  logic [63:0] l_bypassed;
  olaf_counter #(.W(1)) c_bypassed (.clk, .rst, .snapshot, .clear, .gain(bypassed), .latched(l_bypassed));
  logic [63:0] l_malformed;
  olaf_counter #(.W(1)) c_malformed (.clk, .rst, .snapshot, .clear, .gain(malformed), .latched(l_malformed));
  logic [63:0] l_misidentified;
  olaf_counter #(.W(1)) c_misidentified (.clk, .rst, .snapshot, .clear, .gain(misidentified), .latched(l_misidentified));
  logic [63:0] l_lost_before_engine;
  olaf_counter #(.W(1)) c_lost_before_engine (.clk, .rst, .snapshot, .clear, .gain(lost), .latched(l_lost_before_engine));
  logic [63:0] l_lane_saturations;
  olaf_counter #(.W(5)) c_lane_saturations (.clk, .rst, .snapshot, .clear, .gain(lanes_saturated), .latched(l_lane_saturations));
  logic [63:0] l_reward_saturations;
  olaf_counter #(.W(1)) c_reward_saturations (.clk, .rst, .snapshot, .clear, .gain(reward_saturated), .latched(l_reward_saturations));
  logic [63:0] l_count_saturations;
  olaf_counter #(.W(1)) c_count_saturations (.clk, .rst, .snapshot, .clear, .gain(count_saturated), .latched(l_count_saturations));
  logic [63:0] l_locked_collisions;
  olaf_counter #(.W(1)) c_locked_collisions (.clk, .rst, .snapshot, .clear, .gain(collided), .latched(l_locked_collisions));
  logic [63:0] l_busy_cycles;
  olaf_counter #(.W(40)) c_busy_cycles (.clk, .rst, .snapshot, .clear, .gain(fin ? fin_busy : '0), .latched(l_busy_cycles));
  logic [63:0] l_stall_cycles;
  olaf_counter #(.W(40)) c_stall_cycles (.clk, .rst, .snapshot, .clear, .gain(stalled), .latched(l_stall_cycles));
  logic [63:0] l_occupancy_integral;
  olaf_counter #(.W(CW + 1)) c_occupancy_integral (.clk, .rst, .snapshot, .clear, .gain(ce ? held : '0), .latched(l_occupancy_integral));

  logic [63:0] cleared, snapshot_cycle, covered_cycles, queued_frames, queued_updates, carried_frames, carried_updates;
  logic [CW:0] carried;
  logic [31:0] carried_sum;
  logic        came;  // an update was appended one clock ago, so occupancy may have a new peak
  always_ff @(posedge clk) begin
    came <= is[0] && !rst && !clear;
    if (rst) begin
      cleared <= cycles;
      {snapshot_cycle, covered_cycles, queued_frames, queued_updates, carried_frames, carried_updates} <= '0;
      carried <= '0;
      carried_sum <= '0;
      peak <= '0;
    end else begin
      if (snapshot) begin
        snapshot_cycle <= cycles;
        covered_cycles <= cycles - cleared;
        queued_frames <= {{63-CW{1'b0}}, held_n};
        queued_updates <= {32'b0, held_sum_n};
        carried_frames <= {{63-CW{1'b0}}, carried};
        carried_updates <= {32'b0, carried_sum};
      end
      if (clear) begin
        cleared <= cycles;
        carried <= held_n;
        carried_sum <= held_sum_n;
      end
      if (clear || (came && occupancy > peak)) peak <= occupancy;
    end
  end

  always_ff @(posedge clk) if (look) begin
    case (select)
      olaf_regs::QUEUE_SNAPSHOT_CYCLE_OFFSET: value <= snapshot_cycle;
      olaf_regs::QUEUE_COVERED_CYCLES_OFFSET: value <= covered_cycles;
      olaf_regs::QUEUE_IN_OFFSET: value <= l_in;
      olaf_regs::QUEUE_IN_BYTES_OFFSET: value <= l_in_bytes;
      olaf_regs::QUEUE_APPENDED_OFFSET: value <= l_appended;
      olaf_regs::QUEUE_AGGREGATED_OFFSET: value <= l_aggregated;
      olaf_regs::QUEUE_REPLACED_OFFSET: value <= l_replaced;
      olaf_regs::QUEUE_REPLACED_REWARD_OFFSET: value <= l_replaced_reward;
      olaf_regs::QUEUE_DROPPED_FULL_OFFSET: value <= l_dropped_full;
      olaf_regs::QUEUE_DROPPED_REWARD_OFFSET: value <= l_dropped_reward;
      olaf_regs::QUEUE_DROPPED_MISMATCH_OFFSET: value <= l_dropped_mismatch;
      olaf_regs::QUEUE_DELIVERED_FRAMES_OFFSET: value <= l_delivered_frames;
      olaf_regs::QUEUE_DELIVERED_BYTES_OFFSET: value <= l_delivered_bytes;
      olaf_regs::QUEUE_DELIVERED_UPDATES_OFFSET: value <= l_delivered_updates;
      olaf_regs::QUEUE_FLUSHED_FRAMES_OFFSET: value <= l_flushed_frames;
      olaf_regs::QUEUE_FLUSHED_UPDATES_OFFSET: value <= l_flushed_updates;
      olaf_regs::QUEUE_DISCARDED_UPDATES_OFFSET: value <= l_discarded_updates;
      olaf_regs::QUEUE_QUEUED_FRAMES_OFFSET: value <= queued_frames;
      olaf_regs::QUEUE_QUEUED_UPDATES_OFFSET: value <= queued_updates;
      olaf_regs::QUEUE_CARRIED_FRAMES_OFFSET: value <= carried_frames;
      olaf_regs::QUEUE_CARRIED_UPDATES_OFFSET: value <= carried_updates;
      olaf_regs::QUEUE_BYPASSED_OFFSET: value <= l_bypassed;
      olaf_regs::QUEUE_MALFORMED_OFFSET: value <= l_malformed;
      olaf_regs::QUEUE_MISIDENTIFIED_OFFSET: value <= l_misidentified;
      olaf_regs::QUEUE_LOST_BEFORE_ENGINE_OFFSET: value <= l_lost_before_engine;
      olaf_regs::QUEUE_LANE_SATURATIONS_OFFSET: value <= l_lane_saturations;
      olaf_regs::QUEUE_REWARD_SATURATIONS_OFFSET: value <= l_reward_saturations;
      olaf_regs::QUEUE_COUNT_SATURATIONS_OFFSET: value <= l_count_saturations;
      olaf_regs::QUEUE_LOCKED_COLLISIONS_OFFSET: value <= l_locked_collisions;
      olaf_regs::QUEUE_BUSY_CYCLES_OFFSET: value <= l_busy_cycles;
      olaf_regs::QUEUE_STALL_CYCLES_OFFSET: value <= l_stall_cycles;
      olaf_regs::QUEUE_OCCUPANCY_INTEGRAL_OFFSET: value <= l_occupancy_integral;
      default: value <= '0;  // ACKs take another path
    endcase
  end
endmodule
