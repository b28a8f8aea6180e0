// OlafQueue and the packet generator in OpenNIC's 250 MHz user box. VNP4-1 sits between m_axis_gen, or a network port,
// and s_axis, and gives each frame's worker in tuser. Frames on m_axis and m_axis_bypass go to VNP4-2.
//
// Time advances while ce is 1; a card ties ce to 1. A simulator sets it to 0 during register accesses, so that these take
// no time, as in the software twin. run and fluid are for tests: they stop the output's clock while arrivals continue, and
// charge for partial beats as the abstract model does.
module olaf_box #(
  parameter int SLOTS = 8,              // 1 to 4096
  parameter int CLUSTERS = 256,         // to 65,536
  parameter int MAX_BYTES = 9036,       // of a frame, 64 to 9600
  parameter int PORTS = 2,              // read ports of the lane memory
  parameter int MODEL_CYCLES = 1,       // allows engine cycles that the logic itself does not take
  parameter int PROVENANCE = 1,
  parameter int FREE_ON_START = 1,
  parameter int DESCRIPTORS = 16384,
  parameter int FLOWS = 1024,
  parameter int TEMPLATES = 16,
  parameter int GROUPS = 64,
  parameter int MEMBERS = 64,
  parameter int LANE_STYLE = olaf_pkg::IN_BLOCKS,
  parameter int HEADER_STYLE = olaf_pkg::IN_LUTS,
  parameter int TABLE_STYLE = olaf_pkg::IN_BLOCKS,
  parameter int COUNTER_STYLE = olaf_pkg::IN_BLOCKS,
  parameter int GENERATOR_STYLE = olaf_pkg::IN_BLOCKS,
  parameter logic [31:0] BUILD_HASH = '0,
  parameter logic [63:0] BUILD_TIME = '0,
  parameter int PHYS = SLOTS + (FREE_ON_START != 0 ? 1 : 0),
  parameter int PW = PHYS > 1 ? $clog2(PHYS) : 1
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         ce,
  input  logic         run,
  input  logic         fluid,

  input  logic [19:0]  s_axil_awaddr,
  input  logic         s_axil_awvalid,
  output logic         s_axil_awready,
  input  logic [31:0]  s_axil_wdata,
  input  logic [3:0]   s_axil_wstrb,
  input  logic         s_axil_wvalid,
  output logic         s_axil_wready,
  output logic [1:0]   s_axil_bresp,
  output logic         s_axil_bvalid,
  input  logic         s_axil_bready,
  input  logic [19:0]  s_axil_araddr,
  input  logic         s_axil_arvalid,
  output logic         s_axil_arready,
  output logic [31:0]  s_axil_rdata,
  output logic [1:0]   s_axil_rresp,
  output logic         s_axil_rvalid,
  input  logic         s_axil_rready,

  input  logic [511:0] s_axis_tdata,
  input  logic [63:0]  s_axis_tkeep,
  input  logic         s_axis_tlast,
  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [15:0]  s_axis_tuser_src,
  input  logic [15:0]  s_axis_tuser_dst,
  input  logic         s_axis_tuser_known,    // the source is in the tables
  input  logic [15:0]  s_axis_tuser_cluster,
  input  logic [15:0]  s_axis_tuser_worker,

  output logic [511:0] m_axis_tdata,
  output logic [63:0]  m_axis_tkeep,
  output logic         m_axis_tlast,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
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
  input  logic         m_axis_bypass_tready,
  output logic [15:0]  m_axis_bypass_tuser_size,
  output logic [15:0]  m_axis_bypass_tuser_src,
  output logic [15:0]  m_axis_bypass_tuser_dst,

  output logic [511:0] m_axis_gen_tdata,
  output logic [63:0]  m_axis_gen_tkeep,
  output logic         m_axis_gen_tlast,
  output logic         m_axis_gen_tvalid,
  input  logic         m_axis_gen_tready,
  output logic [15:0]  m_axis_gen_tuser_size,
  output logic [15:0]  m_axis_gen_tuser_src,
  output logic [15:0]  m_axis_gen_tuser_dst,
  output logic         m_axis_gen_wire,  // frames leave by the second port and not to s_axis

  // The status that VNP4-2 writes into ACKs.
  output logic [23:0]  status_occupancy,
  output logic [15:0]  status_active,
  output logic [15:0]  status_slots,

  // The provenance log: the decision about each update, and the slot whose frame left. An append or a replacement
  // starts a slot's list of contributors, an aggregation extends it.
  output logic         log_decided,
  output logic [2:0]   log_class,
  output logic [PW-1:0] log_slot,
  output logic [15:0]  log_cluster,
  output logic [15:0]  log_worker,
  output logic [31:0]  log_sequence,
  output logic [47:0]  log_generation,
  output logic         log_departed,
  output logic [PW-1:0] log_departed_slot,

  // For tests only; a card leaves these ports open.
  output logic [63:0]  test_cycles,
  output logic         test_decided,
  output logic         test_offered,
  output logic [2:0]   test_class,
  output logic         test_fin,
  output logic         test_idle,
  output logic         test_resting   // no frame is in progress
);
  localparam int OLAF_BYTES = MAX_BYTES < 9036 ? MAX_BYTES : 9036;  // of an update
  localparam int MAX_BEATS = (MAX_BYTES + 63) / 64;
  localparam int LANES = (OLAF_BYTES - 64) / 4;
  localparam int LINES = LANES > 0 ? (LANES + 15) / 16 : 1;
  localparam int BUFFER = 1 << $clog2(3 * MAX_BEATS + 40);
  localparam int BA = $clog2(BUFFER);
  localparam int CW = $clog2(PHYS + 1);
  localparam int LW = PHYS * LINES > 1 ? $clog2(PHYS * LINES) : 1;
  localparam int UW = CLUSTERS > 1 ? $clog2(CLUSTERS) : 1;

  // ----------------------------------------------------------------------------------------------------------------- time
  logic        passes;
  logic [63:0] cycles, now;
  assign passes = ce && run;
  assign now = cycles + {63'b0, passes};
  assign test_cycles = cycles;
  always_ff @(posedge clk) begin
    if (rst) cycles <= '0;
    else cycles <= now;
  end

  // ------------------------------------------------------------------------------------------------------------- registers
  logic snapshot, clear, forget, flush, restart, enabled, frozen;
  logic cfg_olaf, cfg_filter, cfg_free, cfg_provenance;
  logic [31:0]   cfg_threshold;
  logic [CW-1:0] cfg_depth;
  logic [30:0]   cfg_rate;
  logic [7:0]    cfg_overhead, cfg_dequeue, cfg_merge;
  logic          beyond, sending, occupies, idle, leaving_due;
  logic [PW-1:0] leaving_slot, head;
  logic [CW-1:0] waiting, occupancy, peak;
  logic [16:0]   active;
  logic          counter_look;
  logic [11:0]   counter_select;
  logic [63:0]   counter_value;
  logic          look, looked, inspect, inspected;
  logic [UW-1:0] look_at;
  logic [335:0]  row_classes;
  logic [47:0]   row_frames, row_updates, row_last;
  logic [PW-1:0] inspect_slot;
  logic [31:0]   i_seq, i_reward;
  logic [15:0]   i_cluster, i_worker, i_count;
  logic [11:0]   i_lanes;
  logic [47:0]   i_gen, i_appended;
  logic          i_retransmission, i_saturated;
  logic          g_arm, g_start, g_stop, g_quit, g_busy, g_done, g_underrun, g_unsorted, g_bad_flow, g_bad_length;
  logic          g_wire;
  logic [31:0]   g_flows, g_descriptors;
  logic [63:0]   g_stop_after, g_start_cycle;
  logic [2:0]    g_state;
  logic [1:0]    mem_select;
  logic [31:0]   mem_address, mem_wdata, mem_rdata, mem_length, mem_crc, mem_loaded;
  logic          mem_read, mem_write, mem_ack, mem_forget, mem_sum, mem_busy;
  logic [63:0]   sent_packets, sent_bytes, late_packets, late_cycles_max, late_cycles_sum;
  olaf_control #(
    .SLOTS(SLOTS), .CLUSTERS(CLUSTERS), .MAX_BYTES(MAX_BYTES), .LANES(LANES), .PHYS(PHYS), .PW(PW), .CW(CW), .UW(UW),
    .MODEL_CYCLES(MODEL_CYCLES), .PROVENANCE(PROVENANCE), .FREE_ON_START(FREE_ON_START), .DESCRIPTORS(DESCRIPTORS),
    .FLOWS(FLOWS), .TEMPLATES(TEMPLATES), .GROUPS(GROUPS), .MEMBERS(MEMBERS), .BUILD_HASH(BUILD_HASH), .BUILD_TIME(BUILD_TIME)
  ) control (.*);

  // ------------------------------------------------------------------------------------------------------------- the queue
  logic          f_valid, f_take, f_misidentified, f_retransmission;
  logic [BA-1:0] f_base, rd_addr;
  logic [7:0]    f_beats;
  logic [15:0]   f_bytes, f_cluster, f_worker, f_src, f_dst, f_count;
  logic [1:0]    f_verdict;
  logic [31:0]   f_seq, f_reward;
  logic [47:0]   f_gen;
  logic [319:0]  f_outer;
  logic          rd_en;
  logic [511:0]  rd_data;
  olaf_ingress #(.MAX_BYTES(MAX_BYTES), .OLAF_BYTES(OLAF_BYTES), .CLUSTERS(CLUSTERS), .BUFFER(BUFFER)) ingress (
    .clk, .rst, .ce, .forget,
    .s_tdata(s_axis_tdata), .s_tkeep(s_axis_tkeep), .s_tlast(s_axis_tlast), .s_tvalid(s_axis_tvalid), .s_tready(s_axis_tready),
    .s_tuser_src(s_axis_tuser_src), .s_tuser_dst(s_axis_tuser_dst), .s_tuser_known(s_axis_tuser_known),
    .s_tuser_cluster(s_axis_tuser_cluster), .s_tuser_worker(s_axis_tuser_worker),
    .f_valid, .f_take, .f_base, .f_beats, .f_bytes, .f_verdict, .f_misidentified, .f_cluster, .f_worker, .f_src, .f_dst, .f_seq,
    .f_gen, .f_reward, .f_count, .f_retransmission, .f_outer, .rd_en, .rd_addr, .rd_data
  );

  logic          copy_stall, out_stall, admit, decided, offered, slot_append, slot_retransmission, slot_saturated, slot_written;
  logic          collided, reward_saturated, count_saturated, locks, fetches, fetches_last, fin, cut;
  logic [2:0]    class_;
  logic [1:0]    copy;
  logic [PW-1:0] slot, lock_slot;
  logic [LW-1:0] slot_line, lock_line;
  logic [15:0]   slot_count, discarded, leaving_count;
  logic [UW-1:0] leaving_cluster;
  logic [16:0]   gained;
  logic [31:0]   slot_reward;
  logic [47:0]   slot_gen;
  logic [11:0]   f_lanes, lock_lanes, leaving_lanes;
  logic [39:0]   stalled, fin_busy;
  assign f_lanes = f_bytes[13:2] - 12'd16;
  assign admit = enabled && !frozen;
  olaf_core #(
    .SLOTS(SLOTS), .CLUSTERS(CLUSTERS), .PORTS(PORTS), .FREE_ON_START(FREE_ON_START), .MODEL_CYCLES(MODEL_CYCLES),
    .TABLE_STYLE(TABLE_STYLE), .HEADER_STYLE(HEADER_STYLE), .LINES(LINES)
  ) core (
    .clk, .rst, .ce, .run, .fluid, .restart, .flush, .forget, .cfg_olaf, .cfg_filter, .cfg_free, .cfg_threshold, .cfg_depth,
    .cfg_rate, .cfg_overhead, .cfg_dequeue, .cfg_merge, .admit, .frozen,
    .in_valid(f_valid), .in_take(f_take), .in_verdict(f_verdict), .in_beats(f_beats), .in_cluster(f_cluster),
    .in_worker(f_worker), .in_lanes(f_lanes), .in_reward(f_reward), .in_count(f_count), .in_gen(f_gen),
    .in_retransmission(f_retransmission), .copy_stall, .out_stall,
    .decided, .offered, .class_, .copy, .slot, .slot_line, .slot_append, .slot_count, .slot_reward, .slot_gen,
    .slot_retransmission, .slot_saturated, .slot_written, .discarded, .gained, .collided, .reward_saturated, .count_saturated,
    .locks, .lock_slot, .lock_line, .lock_lanes, .fetches, .fetches_last, .fin, .cut, .leaving_slot, .leaving_cluster,
    .leaving_lanes, .leaving_count, .stalled, .fin_busy, .sending, .leaving_due, .idle, .head, .waiting, .occupies, .active
  );
  assign occupancy = waiting + {{CW-1{1'b0}}, occupies};
  assign beyond = decided && f_verdict == olaf_pkg::IS_BEYOND;

  logic          fetch;
  logic [LW-1:0] fetch_line;
  logic [511:0]  fetch_data;
  logic [4:0]    lanes_saturated;
  olaf_lanes #(.PORTS(PORTS), .DEPTH(PHYS * LINES), .STYLE(LANE_STYLE), .BA(BA), .LW(LW)) lanes (
    .clk, .rst, .ce, .copy, .line(slot_line), .base(f_base), .beats(f_beats), .bytes(f_bytes), .src(f_src), .dst(f_dst),
    .copy_stall, .rd_en, .rd_addr, .rd_data, .fetch, .fetch_line, .fetch_data, .saturated(lanes_saturated),
    .m_tdata(m_axis_bypass_tdata), .m_tkeep(m_axis_bypass_tkeep), .m_tlast(m_axis_bypass_tlast),
    .m_tvalid(m_axis_bypass_tvalid), .m_tready(m_axis_bypass_tready), .m_tuser_size(m_axis_bypass_tuser_size),
    .m_tuser_src(m_axis_bypass_tuser_src), .m_tuser_dst(m_axis_bypass_tuser_dst)
  );

  olaf_reader #(.PHYS(PHYS), .HEADER_STYLE(HEADER_STYLE), .PW(PW), .LW(LW)) reader (
    .clk, .rst, .ce, .now(now[47:0]),
    .w_en(slot_written), .w_append(slot_append), .w_slot(slot), .w_outer(f_outer), .w_seq(f_seq), .w_cluster(f_cluster),
    .w_worker(f_worker), .w_lanes(f_lanes), .w_reward(slot_reward), .w_count(slot_count), .w_gen(slot_gen),
    .w_retransmission(slot_retransmission), .w_saturated(slot_saturated), .w_src(f_src), .w_dst(f_dst),
    .locks, .lock_slot, .lock_line, .lock_empty(lock_lanes == '0), .fetches, .fetches_last, .fin, .cut, .leaving_due, .out_stall,
    .fetch, .fetch_line, .fetch_data, .inspect, .inspect_slot, .inspected, .i_seq, .i_cluster, .i_worker, .i_lanes, .i_reward,
    .i_count, .i_gen, .i_retransmission, .i_saturated, .i_appended,
    .m_tdata(m_axis_tdata), .m_tkeep(m_axis_tkeep), .m_tlast(m_axis_tlast), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready),
    .m_tuser_size(m_axis_tuser_size), .m_tuser_src(m_axis_tuser_src), .m_tuser_dst(m_axis_tuser_dst),
    .m_tuser_abort(m_axis_tuser_abort), .m_tuser_saturated(m_axis_tuser_saturated), .m_tuser_appended(m_axis_tuser_appended)
  );

  // -------------------------------------------------------------------------------------------------------------- counters
  olaf_counters #(.CW(CW)) counters (
    .clk, .rst(rst || forget), .ce(passes), .snapshot, .clear, .flush, .cycles(now),
    .offered, .class_, .bytes(f_bytes[13:0]), .discarded, .gained, .collided, .reward_saturated, .count_saturated,
    .lanes_saturated,
    .bypassed(decided && (f_verdict == olaf_pkg::IS_BYPASSED || f_verdict == olaf_pkg::IS_BEYOND)),
    .malformed(decided && f_verdict == olaf_pkg::IS_MALFORMED), .misidentified(offered && f_misidentified),
    .lost(decided && f_verdict == olaf_pkg::IS_UPDATE && !admit),
    .fin, .fin_bytes({leaving_lanes, 2'b00} + 14'd64), .fin_count(leaving_count), .fin_busy, .stalled, .occupancy,
    .look(counter_look), .select(counter_select), .value(counter_value), .peak
  );
  olaf_clusters #(.CLUSTERS(CLUSTERS), .STYLE(COUNTER_STYLE)) clusters (
    .clk, .rst, .clear(clear || forget), .forget, .now(now[47:0]), .arrives(offered), .a_cluster(f_cluster[UW-1:0]), .a_class(class_),
    .departs(fin), .d_cluster(leaving_cluster), .d_count(leaving_count), .look, .look_at, .looked, .row_classes,
    .row_frames, .row_updates, .row_last
  );

  // ------------------------------------------------------------------------------------------------------------- generator
  olaf_generator #(
    .DESCRIPTORS(DESCRIPTORS), .FLOWS(FLOWS), .TEMPLATES(TEMPLATES), .MAX_BYTES(OLAF_BYTES), .DESCRIPTOR_STYLE(GENERATOR_STYLE)
  ) generator (
    .clk, .rst, .forget, .ce(passes), .now, .snapshot, .clear, .arm(g_arm), .start(g_start), .stop(g_stop), .quit(g_quit),
    .flows(g_flows), .descriptors(g_descriptors), .stop_after(g_stop_after), .state(g_state), .busy(g_busy),
    .start_cycle(g_start_cycle), .ev_done(g_done), .ev_underrun(g_underrun), .ev_unsorted(g_unsorted),
    .ev_bad_flow(g_bad_flow), .ev_bad_length(g_bad_length),
    .mem_select, .mem_address, .mem_read, .mem_write, .mem_wdata, .mem_ack, .mem_rdata, .mem_forget, .mem_sum, .mem_length,
    .mem_busy, .mem_crc, .mem_loaded, .sent_packets, .sent_bytes, .late_packets, .late_cycles_max, .late_cycles_sum,
    .m_tdata(m_axis_gen_tdata), .m_tkeep(m_axis_gen_tkeep), .m_tlast(m_axis_gen_tlast), .m_tvalid(m_axis_gen_tvalid),
    .m_tready(m_axis_gen_tready), .m_tuser_size(m_axis_gen_tuser_size), .m_tuser_src(m_axis_gen_tuser_src),
    .m_tuser_dst(m_axis_gen_tuser_dst)
  );

  // ------------------------------------------------------------------------------------------------------------------ ports
  assign status_occupancy = {{24-CW{1'b0}}, occupancy};
  assign status_active = active[15:0];
  assign status_slots = 16'(cfg_depth);
  assign log_decided = offered && cfg_provenance;
  assign log_class = class_;
  assign log_slot = slot;
  assign log_cluster = f_cluster;
  assign log_worker = f_worker;
  assign log_sequence = f_seq;
  assign log_generation = f_gen;
  assign log_departed = fin && cfg_provenance;
  assign log_departed_slot = leaving_slot;
  assign m_axis_gen_wire = g_wire;
  assign test_decided = decided;
  assign test_offered = offered;
  assign test_class = class_;
  assign test_fin = fin;
  assign test_idle = idle;
  assign test_resting = idle && !f_valid && !g_busy && !m_axis_tvalid && !m_axis_bypass_tvalid && !m_axis_gen_tvalid && !s_axis_tvalid;
endmodule
