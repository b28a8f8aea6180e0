// The registers (docs/reference/registers.md) on AXI-Lite: one 32-bit access at a time, addresses within the 250 MHz user box.
//
// A refused write changes nothing and is answered with SLVERR; an address without a register is answered with DECERR. Both
// also set a bit in common.errors, because a shell may not pass on responses. Accesses that take longer than a cycle are
// delayed: rows of clusters, the inspector, the generator's memories.
module olaf_control #(
  parameter int SLOTS = 8,
  parameter int CLUSTERS = 256,
  parameter int MAX_BYTES = 9036,
  parameter int LANES = 2243,
  parameter int PHYS = 9,
  parameter int PW = 4,
  parameter int CW = 4,
  parameter int UW = 8,
  parameter int MODEL_CYCLES = 1,
  parameter int PROVENANCE = 1,
  parameter int FREE_ON_START = 1,
  parameter int DESCRIPTORS = 16384,
  parameter int FLOWS = 1024,
  parameter int TEMPLATES = 16,
  parameter int GROUPS = 64,
  parameter int MEMBERS = 64,
  parameter logic [31:0] BUILD_HASH = '0,
  parameter logic [63:0] BUILD_TIME = '0
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] now,

  input  logic [19:0] s_axil_awaddr,
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  output logic [1:0]  s_axil_bresp,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  input  logic [19:0] s_axil_araddr,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,

  // Commands for all blocks.
  output logic        snapshot,
  output logic        clear,
  output logic        forget,   // reset everything except time
  output logic        flush,
  output logic        restart,  // the queue takes a new configuration

  // The queue's current configuration.
  output logic        enabled,
  output logic        frozen,
  output logic        cfg_olaf,
  output logic        cfg_filter,
  output logic        cfg_free,
  output logic        cfg_provenance,
  output logic [31:0] cfg_threshold,
  output logic [CW-1:0] cfg_depth,
  output logic [30:0] cfg_rate,
  output logic [7:0]  cfg_overhead,
  output logic [7:0]  cfg_dequeue,
  output logic [7:0]  cfg_merge,

  input  logic        beyond,   // an update arrived for a cluster that the build does not have
  input  logic        sending,
  input  logic [PW-1:0] leaving_slot,
  input  logic [PW-1:0] head,
  input  logic [CW-1:0] waiting,
  input  logic [CW-1:0] occupancy,
  input  logic [CW-1:0] peak,
  input  logic [16:0] active,
  output logic        counter_look,
  output logic [11:0] counter_select,
  input  logic [63:0] counter_value,

  output logic        look,
  output logic [UW-1:0] look_at,
  input  logic        looked,
  input  logic [335:0] row_classes,
  input  logic [47:0] row_frames,
  input  logic [47:0] row_updates,
  input  logic [47:0] row_last,

  output logic        inspect,
  output logic [PW-1:0] inspect_slot,
  input  logic        inspected,
  input  logic [31:0] i_seq,
  input  logic [15:0] i_cluster,
  input  logic [15:0] i_worker,
  input  logic [11:0] i_lanes,
  input  logic [31:0] i_reward,
  input  logic [15:0] i_count,
  input  logic [47:0] i_gen,
  input  logic        i_retransmission,
  input  logic        i_saturated,
  input  logic [47:0] i_appended,

  output logic        g_arm,
  output logic        g_start,
  output logic        g_stop,
  output logic        g_quit,
  output logic        g_wire,
  output logic [31:0] g_flows,
  output logic [31:0] g_descriptors,
  output logic [63:0] g_stop_after,
  input  logic [2:0]  g_state,
  input  logic        g_busy,
  input  logic [63:0] g_start_cycle,
  input  logic        g_done,
  input  logic        g_underrun,
  input  logic        g_unsorted,
  input  logic        g_bad_flow,
  input  logic        g_bad_length,
  output logic [1:0]  mem_select,
  output logic [31:0] mem_address,
  output logic        mem_read,
  output logic        mem_write,
  output logic [31:0] mem_wdata,
  input  logic        mem_ack,
  input  logic [31:0] mem_rdata,
  output logic        mem_forget,
  output logic        mem_sum,
  output logic [31:0] mem_length,
  input  logic        mem_busy,
  input  logic [31:0] mem_crc,
  input  logic [31:0] mem_loaded,
  input  logic [63:0] sent_packets,
  input  logic [63:0] sent_bytes,
  input  logic [63:0] late_packets,
  input  logic [63:0] late_cycles_max,
  input  logic [63:0] late_cycles_sum
);
  localparam logic [7:0] COMMON = 8'h00, QUEUE = 8'h01, REPLICATION = 8'h02, GENERATOR = 8'h03, MODEL = 8'h04;
  localparam logic [31:0] BOX = 32'h0010_0000;
  localparam logic [31:0] NOTHING = 32'hDEAD_BEEF;
  localparam logic [1:0] OKAY = 2'b00, SLVERR = 2'b10, DECERR = 2'b11;
  localparam logic [1:0] READ_ONLY = 2'd0, READ_WRITE = 2'd1, CLEAR_ON_ONE = 2'd2;
  localparam logic [31:0] LINE = 32'h4000_0000;  // 64 bytes a cycle
  localparam logic [31:0] CAPABILITIES = 32'(
    ((MODEL_CYCLES != 0 ? 1 : 0) << olaf_regs::COMMON_CAPABILITIES_MODEL_CYCLES_LSB) |
    ((PROVENANCE != 0 ? 1 : 0) << olaf_regs::COMMON_CAPABILITIES_PROVENANCE_LSB) |
    ((FREE_ON_START != 0 ? 1 : 0) << olaf_regs::COMMON_CAPABILITIES_FREE_ON_START_LSB) |
    (1 << olaf_regs::COMMON_CAPABILITIES_FAULT_INJECTION_LSB) | (1 << olaf_regs::COMMON_CAPABILITIES_LANES_LSB));

  // Reasons to refuse a write.
  localparam logic [2:0] FINE = 3'd0, NO_REGISTER = 3'd1, NOT_WRITABLE = 3'd2, BAD_STATE = 3'd3, BAD_VALUE = 3'd4;

  // ----------------------------------------------------------------------------------------------------------- the access
  localparam logic [2:0] REST = 3'd0, FIND = 3'd1, JUDGE = 3'd2, DO = 3'd3, WAIT = 3'd4, ANSWER = 3'd5;
  logic [2:0]  stage;
  logic        writing;
  logic [19:0] address;
  logic [31:0] data, result;
  logic [1:0]  response;
  logic        whole;      // all four bytes are written

  logic        known, idle, long;
  logic [1:0]  access;
  logic [31:0] writable, reset;
  olaf_map map (.clk, .look(stage == FIND), .address, .known, .access, .idle, .wide(long), .writable, .reset);

  logic [7:0]  block;
  logic [11:0] offset, wide;  // wide is the offset of a 64-bit register's low word
  logic        high;
  assign block = address[19:12];
  assign offset = address[11:0];
  assign high = address[2];
  assign wide = {address[11:3], 3'b000};
  assign counter_select = wide;
  assign counter_look = stage == JUDGE;

  assign s_axil_awready = stage == REST && s_axil_awvalid && s_axil_wvalid;
  assign s_axil_wready = s_axil_awready;
  assign s_axil_arready = stage == REST && !(s_axil_awvalid && s_axil_wvalid);
  assign s_axil_bvalid = stage == ANSWER && writing;
  assign s_axil_rvalid = stage == ANSWER && !writing;
  assign s_axil_bresp = response;
  assign s_axil_rresp = response;
  assign s_axil_rdata = result;

  // ------------------------------------------------------------------------------------------------------------ registers
  logic [31:0] scratch, error_address, cycles_high;
  logic [10:0] errors;
  logic [3:0]  queue_errors;
  logic [10:0] mode;
  logic [12:0] depth;
  logic [31:0] threshold, increment;
  logic        limited;
  logic [7:0]  overhead, dequeue, merge;
  logic [31:0] inspect_index, cluster_index, group_index, member_index;
  logic        valid, leaving;
  logic [9:0]  events;
  logic [31:0] ack_delay;
  logic        empty;
  assign empty = waiting == '0 && !sending;

  // Memory of groups: the number of members of each, and the members.
  localparam int GW = GROUPS > 1 ? $clog2(GROUPS) : 1;
  localparam int SW = $clog2(MEMBERS + 1);
  localparam int EW = $clog2(GROUPS * MEMBERS);
  logic          size_we, member_we, wiping_groups;
  logic [GW-1:0] size_at;
  logic [SW-1:0] size_d, size;
  logic [EW-1:0] member_at;
  logic [23:0]   member_d, member;
  olaf_lutram #(.WIDTH(SW), .DEPTH(GROUPS)) sizes (
    .clk, .we(size_we), .waddr(size_at), .wdata(size_d), .raddr(group_index[GW-1:0]), .rdata(size)
  );
  logic [31:0] sweep;  // state of a longer access
  assign member_at = EW'(32'(group_index[GW-1:0]) * MEMBERS) + (at_size ? sweep[EW-1:0] : member_index[EW-1:0]);
  olaf_ram #(.WIDTH(24), .DEPTH(GROUPS * MEMBERS)) members (
    .clk, .we(member_we), .waddr(member_at), .wdata(member_d), .re(1'b1), .raddr(member_at), .rdata(member)
  );

  // -------------------------------------------------------------------------------------------------------------- refusal
  logic [31:0] mem_limit;
  logic        resting;
  logic [2:0]  reason;
  always_comb begin
    case (mem_select)
      2'd0: mem_limit = 32'(DESCRIPTORS * 8);
      2'd1: mem_limit = 32'(FLOWS * 16);
      default: mem_limit = 32'(TEMPLATES * 2304);
    endcase
  end
  assign resting = block == QUEUE ? !enabled && empty : block == GENERATOR ? !g_busy : 1'b1;
  logic one_command, mode_missing, arms, starts, sums, forgets;
  assign one_command = (data & (data - 32'd1)) == '0;
  assign mode_missing = data[7:0] > 8'd1 || (data[olaf_regs::QUEUE_MODE_FREE_ON_START_LSB] && FREE_ON_START == 0) ||
                        (data[olaf_regs::QUEUE_MODE_PROVENANCE_LSB] && PROVENANCE == 0);
  assign arms = data[olaf_regs::GENERATOR_COMMAND_ARM_LSB];
  assign starts = data[olaf_regs::GENERATOR_COMMAND_START_LSB];
  assign sums = data[olaf_regs::GENERATOR_MEM_COMMAND_CRC_LSB];
  assign forgets = data[olaf_regs::GENERATOR_MEM_COMMAND_CLEAR_LSB];
  always_ff @(posedge clk) begin
    logic [31:0] low, most;
    if (stage == JUDGE) begin
      low = '0;
      most = '1;
      case ({block, offset})
        {QUEUE, olaf_regs::QUEUE_DEPTH_OFFSET}: begin
          low = 32'd1;
          most = 32'(SLOTS);
        end
        {QUEUE, olaf_regs::QUEUE_REWARD_THRESHOLD_OFFSET}: most = 32'h7fff_ffff;
        {QUEUE, olaf_regs::QUEUE_LIMITER_INCREMENT_OFFSET}: begin
          low = 32'd1;
          most = LINE;
        end
        {QUEUE, olaf_regs::QUEUE_LIMITER_OVERHEAD_OFFSET}: most = 32'd255;
        {QUEUE, olaf_regs::QUEUE_DEQUEUE_CYCLES_OFFSET}, {QUEUE, olaf_regs::QUEUE_MERGE_CYCLES_OFFSET}:
          most = MODEL_CYCLES != 0 ? 32'd255 : 32'd0;
        {QUEUE, olaf_regs::QUEUE_CLUSTER_INDEX_OFFSET}: most = 32'(CLUSTERS - 1);
        {QUEUE, olaf_regs::QUEUE_INSPECT_INDEX_OFFSET}: most = 32'(SLOTS);
        {REPLICATION, olaf_regs::REPLICATION_GROUP_INDEX_OFFSET}: most = 32'(GROUPS - 1);
        {REPLICATION, olaf_regs::REPLICATION_GROUP_SIZE_OFFSET}: most = 32'(MEMBERS);
        {REPLICATION, olaf_regs::REPLICATION_MEMBER_INDEX_OFFSET}: most = {{32-SW{1'b0}}, size};
        {GENERATOR, olaf_regs::GENERATOR_FLOWS_OFFSET}: most = 32'(FLOWS);
        {GENERATOR, olaf_regs::GENERATOR_DESCRIPTORS_OFFSET}: most = 32'(DESCRIPTORS);
        {GENERATOR, olaf_regs::GENERATOR_STOP_AFTER_OFFSET + 12'd4}: most = 32'h7fff_ffff;
        {GENERATOR, olaf_regs::GENERATOR_MEM_SELECT_OFFSET}: most = 32'd2;
        {GENERATOR, olaf_regs::GENERATOR_MEM_ADDRESS_OFFSET}, {GENERATOR, olaf_regs::GENERATOR_MEM_LENGTH_OFFSET}: most = mem_limit;
        {MODEL, olaf_regs::MODEL_CONTROL_OFFSET}: most = '0;  // there is no server behind the queue
        default: ;
      endcase
      reason <= FINE;
      if (!known || !(block <= MODEL)) reason <= NO_REGISTER;
      else if (access == READ_ONLY) reason <= NOT_WRITABLE;
      else if ((data & ~writable) != '0 || !whole) reason <= BAD_VALUE;
      else if (idle && !resting) reason <= BAD_STATE;
      else if (data < low || data > most) reason <= BAD_VALUE;
      else begin
        case ({block, offset})
          {QUEUE, olaf_regs::QUEUE_MODE_OFFSET}: if (mode_missing) reason <= BAD_VALUE;
          {QUEUE, olaf_regs::QUEUE_INSPECT_INDEX_OFFSET}: if (!frozen) reason <= BAD_STATE;
          {REPLICATION, olaf_regs::REPLICATION_MEMBER_DATA_OFFSET}: if (member_index >= {{32-SW{1'b0}}, size}) reason <= BAD_VALUE;
          {GENERATOR, olaf_regs::GENERATOR_COMMAND_OFFSET}:
            if (!one_command) reason <= BAD_VALUE;
            else if (arms && g_busy) reason <= BAD_STATE;
            else if (starts && 32'(g_state) != olaf_regs::GENERATOR_STATE_STATE_ARMED) reason <= BAD_STATE;
          {GENERATOR, olaf_regs::GENERATOR_MEM_DATA_OFFSET}:
            if (g_busy) reason <= BAD_STATE;
            else if ((mem_select == 2'd2 && mem_address < 32'd2304) || mem_address >= mem_limit) reason <= BAD_VALUE;
          {GENERATOR, olaf_regs::GENERATOR_MEM_COMMAND_OFFSET}:
            if (sums && mem_length > mem_loaded) reason <= BAD_VALUE;
            else if (forgets && g_busy) reason <= BAD_STATE;
          default: ;
        endcase
      end
    end
  end

  // ------------------------------------------------------------------------------------------------------------ the value
  // The value of a read; registers that are not listed here have the map's value.
  logic [63:0] value;
  logic [47:0] row_in;
  assign row_in = row_classes[47:0] + row_classes[95:48] + row_classes[143:96] + row_classes[191:144] + row_classes[239:192] +
                  row_classes[287:240] + row_classes[335:288];

  always_ff @(posedge clk) begin
    if (stage == JUDGE) begin
      value <= {32'b0, reset};
      case (block)
        COMMON: begin
          case (wide)
            {olaf_regs::COMMON_BUILD_TIME_OFFSET}: value <= BUILD_TIME;
            {olaf_regs::COMMON_CYCLES_OFFSET}: value <= {cycles_high, now[31:0]};
            default: ;
          endcase
          case (offset)
            olaf_regs::COMMON_ROLE_OFFSET: value[31:0] <= 32'd3;
            olaf_regs::COMMON_CAPABILITIES_OFFSET: value[31:0] <= CAPABILITIES;
            olaf_regs::COMMON_BUILD_HASH_OFFSET: value[31:0] <= BUILD_HASH;
            olaf_regs::COMMON_SCRATCH_OFFSET: value[31:0] <= scratch;
            olaf_regs::COMMON_CLOCK_HZ_OFFSET: value[31:0] <= 32'd250_000_000;
            olaf_regs::COMMON_MAX_PACKET_BYTES_OFFSET: value[31:0] <= 32'(MAX_BYTES);
            olaf_regs::COMMON_ERRORS_OFFSET: value[31:0] <= {21'b0, errors};
            olaf_regs::COMMON_ERROR_ADDRESS_OFFSET: value[31:0] <= error_address;
            default: ;
          endcase
        end
        QUEUE: begin
          if (offset >= olaf_regs::QUEUE_SNAPSHOT_CYCLE_OFFSET) value <= '0;  // see DO
          case (wide)
            olaf_regs::QUEUE_INSPECT_GENERATION_OFFSET: value <= valid ? {16'b0, i_gen} : '0;
            olaf_regs::QUEUE_INSPECT_APPENDED_OFFSET: value <= valid ? {16'b0, i_appended} : '0;
            olaf_regs::QUEUE_CLUSTER_IN_OFFSET: value <= {16'b0, row_in};
            olaf_regs::QUEUE_CLUSTER_APPENDED_OFFSET: value <= {16'b0, row_classes[47:0]};
            olaf_regs::QUEUE_CLUSTER_AGGREGATED_OFFSET: value <= {16'b0, row_classes[95:48]};
            olaf_regs::QUEUE_CLUSTER_REPLACED_OFFSET: value <= {16'b0, row_classes[143:96]};
            olaf_regs::QUEUE_CLUSTER_REPLACED_REWARD_OFFSET: value <= {16'b0, row_classes[191:144]};
            olaf_regs::QUEUE_CLUSTER_DROPPED_FULL_OFFSET: value <= {16'b0, row_classes[239:192]};
            olaf_regs::QUEUE_CLUSTER_DROPPED_REWARD_OFFSET: value <= {16'b0, row_classes[287:240]};
            olaf_regs::QUEUE_CLUSTER_DROPPED_MISMATCH_OFFSET: value <= {16'b0, row_classes[335:288]};
            olaf_regs::QUEUE_CLUSTER_DELIVERED_FRAMES_OFFSET: value <= {16'b0, row_frames};
            olaf_regs::QUEUE_CLUSTER_DELIVERED_UPDATES_OFFSET: value <= {16'b0, row_updates};
            olaf_regs::QUEUE_CLUSTER_LAST_DEPARTURE_OFFSET: value <= {16'b0, row_last};
            default: ;
          endcase
          case (offset)
            olaf_regs::QUEUE_BUILT_SLOTS_OFFSET: value[31:0] <= 32'(SLOTS);
            olaf_regs::QUEUE_BUILT_CLUSTERS_OFFSET: value[31:0] <= 32'(CLUSTERS);
            olaf_regs::QUEUE_BUILT_LANES_OFFSET: value[31:0] <= 32'(LANES);
            olaf_regs::QUEUE_CONTROL_OFFSET: value[31:0] <= {30'b0, frozen, enabled};
            olaf_regs::QUEUE_STATUS_OFFSET: value[31:0] <= {28'b0, !enabled && !empty, frozen, empty, enabled && !frozen};
            olaf_regs::QUEUE_ERRORS_OFFSET: value[31:0] <= {28'b0, queue_errors};
            olaf_regs::QUEUE_MODE_OFFSET: value[31:0] <= {21'b0, mode};
            olaf_regs::QUEUE_DEPTH_OFFSET: value[31:0] <= {19'b0, depth};
            olaf_regs::QUEUE_REWARD_THRESHOLD_OFFSET: value[31:0] <= threshold;
            olaf_regs::QUEUE_LIMITER_CONTROL_OFFSET: value[31:0] <= {31'b0, limited};
            olaf_regs::QUEUE_LIMITER_INCREMENT_OFFSET: value[31:0] <= increment;
            olaf_regs::QUEUE_LIMITER_OVERHEAD_OFFSET: value[31:0] <= {24'b0, overhead};
            olaf_regs::QUEUE_DEQUEUE_CYCLES_OFFSET: value[31:0] <= {24'b0, dequeue};
            olaf_regs::QUEUE_MERGE_CYCLES_OFFSET: value[31:0] <= {24'b0, merge};
            olaf_regs::QUEUE_OCCUPANCY_OFFSET: value[31:0] <= {{32-CW{1'b0}}, occupancy};
            olaf_regs::QUEUE_PEAK_OCCUPANCY_OFFSET: value[31:0] <= {{32-CW{1'b0}}, peak};
            olaf_regs::QUEUE_ACTIVE_CLUSTERS_OFFSET: value[31:0] <= {15'b0, active};
            olaf_regs::QUEUE_INSPECT_INDEX_OFFSET: value[31:0] <= inspect_index;
            olaf_regs::QUEUE_INSPECT_STATE_OFFSET:
              value[31:0] <= {28'b0, valid && i_saturated, valid && i_retransmission, valid && leaving, valid};
            olaf_regs::QUEUE_INSPECT_IDENTITY_OFFSET: value[31:0] <= valid ? {i_cluster, i_worker} : '0;
            olaf_regs::QUEUE_INSPECT_SIZE_OFFSET: value[31:0] <= valid ? {4'b0, i_lanes, i_count} : '0;
            olaf_regs::QUEUE_INSPECT_SEQUENCE_OFFSET: value[31:0] <= valid ? i_seq : '0;
            olaf_regs::QUEUE_INSPECT_REWARD_OFFSET: value[31:0] <= valid ? i_reward : '0;
            olaf_regs::QUEUE_CLUSTER_INDEX_OFFSET: value[31:0] <= cluster_index;
            default: ;
          endcase
        end
        REPLICATION:
          case (offset)
            olaf_regs::REPLICATION_BUILT_GROUPS_OFFSET: value[31:0] <= 32'(GROUPS);
            olaf_regs::REPLICATION_BUILT_MEMBERS_OFFSET: value[31:0] <= 32'(MEMBERS);
            olaf_regs::REPLICATION_GROUP_INDEX_OFFSET: value[31:0] <= group_index;
            olaf_regs::REPLICATION_GROUP_SIZE_OFFSET: value[31:0] <= {{32-SW{1'b0}}, size};
            olaf_regs::REPLICATION_MEMBER_INDEX_OFFSET: value[31:0] <= member_index;
            default: ;
          endcase
        GENERATOR: begin
          case (wide)
            olaf_regs::GENERATOR_STOP_AFTER_OFFSET: value <= g_stop_after;
            olaf_regs::GENERATOR_START_CYCLE_OFFSET: value <= g_start_cycle;
            olaf_regs::GENERATOR_SENT_PACKETS_OFFSET: value <= sent_packets;
            olaf_regs::GENERATOR_SENT_BYTES_OFFSET: value <= sent_bytes;
            olaf_regs::GENERATOR_LATE_PACKETS_OFFSET: value <= late_packets;
            olaf_regs::GENERATOR_LATE_CYCLES_MAX_OFFSET: value <= late_cycles_max;
            olaf_regs::GENERATOR_LATE_CYCLES_SUM_OFFSET: value <= late_cycles_sum;
            default: ;
          endcase
          case (offset)
            olaf_regs::GENERATOR_BUILT_FLOWS_OFFSET: value[31:0] <= 32'(FLOWS);
            olaf_regs::GENERATOR_BUILT_DESCRIPTORS_OFFSET: value[31:0] <= 32'(DESCRIPTORS);
            olaf_regs::GENERATOR_BUILT_TEMPLATES_OFFSET: value[31:0] <= 32'(TEMPLATES);
            olaf_regs::GENERATOR_STATE_OFFSET: value[31:0] <= {29'b0, g_state};
            olaf_regs::GENERATOR_EVENTS_OFFSET: value[31:0] <= {22'b0, events};
            olaf_regs::GENERATOR_CONTROL_OFFSET: value[31:0] <= {31'b0, g_wire};
            olaf_regs::GENERATOR_FLOWS_OFFSET: value[31:0] <= g_flows;
            olaf_regs::GENERATOR_DESCRIPTORS_OFFSET: value[31:0] <= g_descriptors;
            olaf_regs::GENERATOR_MEM_SELECT_OFFSET: value[31:0] <= {30'b0, mem_select};
            olaf_regs::GENERATOR_MEM_ADDRESS_OFFSET: value[31:0] <= mem_address;
            olaf_regs::GENERATOR_MEM_LENGTH_OFFSET: value[31:0] <= mem_length;
            olaf_regs::GENERATOR_MEM_STATUS_OFFSET: value[31:0] <= {31'b0, mem_busy};
            olaf_regs::GENERATOR_MEM_CRC_OFFSET: value[31:0] <= mem_crc;
            default: ;
          endcase
        end
        MODEL: if (offset == olaf_regs::MODEL_ACK_DELAY_OFFSET) value[31:0] <= ack_delay;
        default: ;
      endcase
    end
  end

  // --------------------------------------------------------------------------------------------------------------- acting
  logic at_cluster, at_inspect, at_memory, at_member, at_size, at_groups, at_generator;
  logic at_common, at_queue, at_proxy, at_control;
  always_ff @(posedge clk) begin
    if (stage == FIND) begin
      at_cluster <= block == QUEUE && offset == olaf_regs::QUEUE_CLUSTER_INDEX_OFFSET;
      at_inspect <= block == QUEUE && offset == olaf_regs::QUEUE_INSPECT_INDEX_OFFSET;
      at_control <= block == QUEUE && offset == olaf_regs::QUEUE_CONTROL_OFFSET;
      at_queue <= block == QUEUE && offset == olaf_regs::QUEUE_COMMAND_OFFSET;
      at_memory <= block == GENERATOR && offset == olaf_regs::GENERATOR_MEM_DATA_OFFSET;
      at_generator <= block == GENERATOR && offset == olaf_regs::GENERATOR_COMMAND_OFFSET;
      at_proxy <= block == GENERATOR && offset == olaf_regs::GENERATOR_MEM_COMMAND_OFFSET;
      at_member <= block == REPLICATION && offset == olaf_regs::REPLICATION_MEMBER_DATA_OFFSET;
      at_size <= block == REPLICATION && offset == olaf_regs::REPLICATION_GROUP_SIZE_OFFSET;
      at_groups <= block == REPLICATION && offset == olaf_regs::REPLICATION_COMMAND_OFFSET;
      at_common <= block == COMMON && offset == olaf_regs::COMMON_COMMAND_OFFSET;
    end
  end

  logic write_ok, refused, command;
  assign write_ok = stage == DO && writing && reason == FINE;
  assign command = write_ok && at_common;
  assign refused = stage == DO && writing && reason != FINE;
  assign snapshot = command && data[olaf_regs::COMMON_COMMAND_SNAPSHOT_LSB];
  assign clear = command && data[olaf_regs::COMMON_COMMAND_CLEAR_LSB];
  assign forget = command && data[olaf_regs::COMMON_COMMAND_RESET_LSB];
  assign flush = write_ok && at_queue && data[0];
  assign look_at = data[UW-1:0];
  assign look = stage == WAIT && writing && at_cluster;
  assign inspect = stage == WAIT && writing && at_inspect;
  assign mem_wdata = data;
  assign mem_read = stage == WAIT && !writing && at_memory && mem_address < mem_limit;
  assign mem_write = stage == WAIT && writing && at_memory;
  assign mem_sum = write_ok && at_proxy && sums;
  assign mem_forget = write_ok && at_proxy && forgets;

  // Commands to the generator wait until its memories are idle, which matters only after a reset.
  logic go;
  assign go = stage == WAIT && writing && at_generator && !mem_busy;
  assign g_arm = go && arms;
  assign g_start = go && starts;
  assign g_stop = go && data[olaf_regs::GENERATOR_COMMAND_STOP_LSB];
  assign g_quit = go && data[olaf_regs::GENERATOR_COMMAND_ABORT_LSB];

  // Slots are inspected in departure order, the leaving one first.
  logic [PW:0] inspect_sum;
  assign inspect_sum = {1'b0, head} + (PW+1)'(data) - {{PW{1'b0}}, sending};
  assign inspect_slot = sending && data == '0 ? leaving_slot : 32'(inspect_sum) >= PHYS ? PW'(32'(inspect_sum) - PHYS) : inspect_sum[PW-1:0];

  // Writing a size clears the members that it adds, and clearing forgets every size.
  assign wiping_groups = stage == WAIT && writing && at_groups;
  assign size_we = wiping_groups || (stage == WAIT && writing && at_size && sweep >= data) || forgetting;
  assign size_at = wiping_groups || forgetting ? sweep[GW-1:0] : group_index[GW-1:0];
  assign size_d = wiping_groups || forgetting ? '0 : data[SW-1:0];
  assign member_we = (stage == WAIT && writing && at_size && sweep < data) || (write_ok && at_member);
  assign member_d = at_size ? '0 : data[23:0];
  logic forgetting;  // the sizes, after a reset

  always_ff @(posedge clk) begin
    if (rst) begin
      stage <= REST;
      forgetting <= 1'b0;
    end else begin
      case (stage)
        REST: begin
          writing <= s_axil_awready;
          address <= s_axil_awready ? s_axil_awaddr : s_axil_araddr;
          data <= s_axil_wdata;
          whole <= s_axil_wstrb == 4'hf;
          if (s_axil_awready || (s_axil_arready && s_axil_arvalid)) stage <= FIND;
        end
        FIND: stage <= JUDGE;
        JUDGE: begin
          sweep <= {{32-SW{1'b0}}, size};
          if (!forgetting) stage <= DO;
        end
        DO: begin
          stage <= ANSWER;
          response <= OKAY;
          result <= high && long ? value[63:32] : value[31:0];
          if (block == QUEUE && offset >= olaf_regs::QUEUE_SNAPSHOT_CYCLE_OFFSET) result <= high ? counter_value[63:32] : counter_value[31:0];
          if (writing) begin
            if (reason == NO_REGISTER || reason == NOT_WRITABLE) response <= DECERR;
            else if (reason != FINE) response <= SLVERR;
            else if (at_cluster || at_inspect || at_memory || at_generator || at_size || at_groups) stage <= WAIT;
            if (reason == FINE && at_groups) sweep <= '0;
          end else if (!known || !(block <= MODEL)) begin
            response <= DECERR;
            result <= NOTHING;
          end else if (access != READ_ONLY && access != READ_WRITE && access != CLEAR_ON_ONE) result <= '0;
          else if (at_memory || at_member) stage <= WAIT;
        end
        WAIT: begin
          if (writing) begin
            if (at_cluster && looked) stage <= ANSWER;
            if (at_inspect && inspected) stage <= ANSWER;
            if (at_memory && mem_ack) stage <= ANSWER;
            if (at_generator && !mem_busy) stage <= ANSWER;
            if (at_size) begin
              sweep <= sweep + 32'd1;
              if (sweep >= data) stage <= ANSWER;
            end
            if (at_groups) begin
              sweep <= sweep + 32'd1;
              if (sweep == 32'(GROUPS - 1)) stage <= ANSWER;
            end
          end else if (at_member) begin
            result <= member_index < {{32-SW{1'b0}}, size} ? {8'b0, member} : '0;
            stage <= ANSWER;
          end else if (mem_address >= mem_limit) begin
            result <= '0;
            stage <= ANSWER;
          end else if (mem_ack) begin
            result <= mem_rdata;
            stage <= ANSWER;
          end
        end
        default: if (writing ? s_axil_bready : s_axil_rready) stage <= REST;
      endcase
      if (forget) begin
        forgetting <= 1'b1;
        sweep <= '0;
      end else if (forgetting) begin
        sweep <= sweep + 32'd1;
        if (sweep == 32'(GROUPS - 1)) forgetting <= 1'b0;
      end
    end
  end

  // Values that writes store.
  logic differs;
  logic [10:0] in_force;  // the mode
  logic [CW-1:0] depth_built;
  assign depth_built = 32'(depth) > SLOTS ? CW'(SLOTS) : depth[CW-1:0];
  always_ff @(posedge clk)
    if (stage == JUDGE)
      differs <= {mode, depth_built, threshold, limited ? increment[30:0] : LINE[30:0], overhead, dequeue, merge} !=
                 {in_force, cfg_depth, cfg_threshold, cfg_rate, cfg_overhead, cfg_dequeue, cfg_merge};
  assign restart = write_ok && at_control && data[0] && !enabled && differs;
  assign cfg_olaf = in_force[0];
  assign cfg_filter = in_force[olaf_regs::QUEUE_MODE_REWARD_FILTER_LSB];
  assign cfg_free = FREE_ON_START != 0 && in_force[olaf_regs::QUEUE_MODE_FREE_ON_START_LSB];
  assign cfg_provenance = PROVENANCE != 0 && in_force[olaf_regs::QUEUE_MODE_PROVENANCE_LSB];

  always_ff @(posedge clk) begin
    if (rst || forget) begin
      scratch <= 32'h5A5A_A5A5;
      mode <= '0;
      depth <= 13'd8;
      threshold <= '0;
      limited <= 1'b0;
      increment <= LINE;
      overhead <= '0;
      dequeue <= '0;
      merge <= '0;
      in_force <= '0;
      cfg_depth <= CW'(SLOTS < 8 ? SLOTS : 8);
      cfg_threshold <= '0;
      cfg_rate <= LINE[30:0];
      cfg_overhead <= '0;
      cfg_dequeue <= '0;
      cfg_merge <= '0;
      enabled <= 1'b0;
      frozen <= 1'b0;
      inspect_index <= '0;
      cluster_index <= '0;
      group_index <= '0;
      member_index <= '0;
      valid <= 1'b0;
      leaving <= 1'b0;
      g_wire <= 1'b0;
      g_flows <= '0;
      g_descriptors <= '0;
      g_stop_after <= '0;
      mem_select <= '0;
      mem_address <= '0;
      mem_length <= '0;
      ack_delay <= 32'd250;
    end else begin
      if (restart) begin
        in_force <= mode;
        cfg_depth <= depth_built;
        cfg_threshold <= threshold;
        cfg_rate <= limited ? increment[30:0] : LINE[30:0];
        cfg_overhead <= overhead;
        cfg_dequeue <= dequeue;
        cfg_merge <= merge;
      end
      if (write_ok) begin
        case ({block, offset})
          {COMMON, olaf_regs::COMMON_SCRATCH_OFFSET}: scratch <= data;
          {QUEUE, olaf_regs::QUEUE_CONTROL_OFFSET}: {frozen, enabled} <= data[1:0];
          {QUEUE, olaf_regs::QUEUE_MODE_OFFSET}: mode <= data[10:0];
          {QUEUE, olaf_regs::QUEUE_DEPTH_OFFSET}: depth <= data[12:0];
          {QUEUE, olaf_regs::QUEUE_REWARD_THRESHOLD_OFFSET}: threshold <= data;
          {QUEUE, olaf_regs::QUEUE_LIMITER_CONTROL_OFFSET}: limited <= data[0];
          {QUEUE, olaf_regs::QUEUE_LIMITER_INCREMENT_OFFSET}: increment <= data;
          {QUEUE, olaf_regs::QUEUE_LIMITER_OVERHEAD_OFFSET}: overhead <= data[7:0];
          {QUEUE, olaf_regs::QUEUE_DEQUEUE_CYCLES_OFFSET}: dequeue <= data[7:0];
          {QUEUE, olaf_regs::QUEUE_MERGE_CYCLES_OFFSET}: merge <= data[7:0];
          {QUEUE, olaf_regs::QUEUE_INSPECT_INDEX_OFFSET}: begin
            inspect_index <= data;
            valid <= data < {{32-CW{1'b0}}, waiting} + {31'b0, sending};
            leaving <= sending && data == '0;
          end
          {QUEUE, olaf_regs::QUEUE_CLUSTER_INDEX_OFFSET}: cluster_index <= data;
          {REPLICATION, olaf_regs::REPLICATION_GROUP_INDEX_OFFSET}: begin
            group_index <= data;
            member_index <= '0;
          end
          {REPLICATION, olaf_regs::REPLICATION_GROUP_SIZE_OFFSET}: member_index <= '0;
          {REPLICATION, olaf_regs::REPLICATION_MEMBER_INDEX_OFFSET}: member_index <= data;
          {REPLICATION, olaf_regs::REPLICATION_MEMBER_DATA_OFFSET}: member_index <= member_index + 32'd1;
          {GENERATOR, olaf_regs::GENERATOR_CONTROL_OFFSET}: g_wire <= data[0];
          {GENERATOR, olaf_regs::GENERATOR_FLOWS_OFFSET}: g_flows <= data;
          {GENERATOR, olaf_regs::GENERATOR_DESCRIPTORS_OFFSET}: g_descriptors <= data;
          {GENERATOR, olaf_regs::GENERATOR_STOP_AFTER_OFFSET}: g_stop_after[31:0] <= data;
          {GENERATOR, olaf_regs::GENERATOR_STOP_AFTER_OFFSET + 12'd4}: g_stop_after[63:32] <= data;
          {GENERATOR, olaf_regs::GENERATOR_MEM_SELECT_OFFSET}: begin
            mem_select <= data[1:0];
            mem_address <= '0;
          end
          {GENERATOR, olaf_regs::GENERATOR_MEM_ADDRESS_OFFSET}: mem_address <= data;
          {GENERATOR, olaf_regs::GENERATOR_MEM_LENGTH_OFFSET}: mem_length <= data;
          {MODEL, olaf_regs::MODEL_ACK_DELAY_OFFSET}: ack_delay <= data;
          default: ;
        endcase
      end
      if (stage == WAIT && at_memory && mem_ack) mem_address <= mem_address + 32'd1;
      if (stage == WAIT && !writing && at_member && member_index < {{32-SW{1'b0}}, size}) member_index <= member_index + 32'd1;
    end
  end

  always_ff @(posedge clk) begin
    if (rst || forget) cycles_high <= '0;
    else if (stage == JUDGE && !writing && block == COMMON && offset == olaf_regs::COMMON_CYCLES_OFFSET) cycles_high <= now[63:32];
  end

  // Sticky bits: a bit that is raised in the cycle of a clearing stays set.
  logic missed, failed;
  assign missed = stage == DO && (writing ? reason == NO_REGISTER : !known || !(block <= MODEL));
  assign failed = g_underrun || g_unsorted || g_bad_flow || g_bad_length;
  always_ff @(posedge clk) begin
    if (rst || forget) begin
      errors <= '0;
      queue_errors <= '0;
      events <= '0;
      error_address <= '0;
    end else begin
      if (write_ok) begin
        if (block == COMMON && offset == olaf_regs::COMMON_ERRORS_OFFSET) errors <= errors & ~data[10:0];
        if (block == QUEUE && offset == olaf_regs::QUEUE_ERRORS_OFFSET) queue_errors <= queue_errors & ~data[3:0];
        if (block == GENERATOR && offset == olaf_regs::GENERATOR_EVENTS_OFFSET) events <= events & ~data[9:0];
      end
      if (missed) errors[olaf_regs::COMMON_ERRORS_ADDRESS_LSB] <= 1'b1;
      if (missed || refused) error_address <= BOX + {12'b0, address};
      if (refused && !missed) begin
        if (reason == NOT_WRITABLE) errors[olaf_regs::COMMON_ERRORS_READ_ONLY_LSB] <= 1'b1;
        if (reason == BAD_STATE) errors[olaf_regs::COMMON_ERRORS_STATE_LSB] <= 1'b1;
        if (reason == BAD_VALUE) errors[olaf_regs::COMMON_ERRORS_VALUE_LSB] <= 1'b1;
        if (block == QUEUE) begin
          errors[olaf_regs::COMMON_ERRORS_QUEUE_LSB] <= 1'b1;
          if (reason == BAD_STATE) queue_errors[olaf_regs::QUEUE_ERRORS_STATE_LSB] <= 1'b1;
          else queue_errors[olaf_regs::QUEUE_ERRORS_VALUE_LSB] <= 1'b1;
          if (at_inspect && reason == BAD_STATE) queue_errors[olaf_regs::QUEUE_ERRORS_NOT_FROZEN_LSB] <= 1'b1;
        end
        if (block == REPLICATION) errors[olaf_regs::COMMON_ERRORS_REPLICATION_LSB] <= 1'b1;
        if (block == GENERATOR) begin
          errors[olaf_regs::COMMON_ERRORS_GENERATOR_LSB] <= 1'b1;
          if (reason == BAD_STATE) events[olaf_regs::GENERATOR_EVENTS_REFUSED_LSB] <= 1'b1;
          else events[olaf_regs::GENERATOR_EVENTS_VALUE_LSB] <= 1'b1;
        end
      end
      if (beyond) begin
        errors[olaf_regs::COMMON_ERRORS_QUEUE_LSB] <= 1'b1;
        queue_errors[olaf_regs::QUEUE_ERRORS_CLUSTER_RANGE_LSB] <= 1'b1;
      end
      if (g_done) events[olaf_regs::GENERATOR_EVENTS_DONE_LSB] <= 1'b1;
      if (failed) begin
        errors[olaf_regs::COMMON_ERRORS_GENERATOR_LSB] <= 1'b1;
        events[olaf_regs::GENERATOR_EVENTS_ERROR_LSB] <= 1'b1;
        if (g_underrun) events[olaf_regs::GENERATOR_EVENTS_UNDERRUN_LSB] <= 1'b1;
        if (g_unsorted) events[olaf_regs::GENERATOR_EVENTS_UNSORTED_LSB] <= 1'b1;
        if (g_bad_flow) events[olaf_regs::GENERATOR_EVENTS_BAD_FLOW_LSB] <= 1'b1;
        if (g_bad_length) events[olaf_regs::GENERATOR_EVENTS_BAD_LENGTH_LSB] <= 1'b1;
      end
    end
  end
endmodule
