// The packet generator sends descriptors' frames at absolute cycles of its run clock (docs/reference/registers.md, generator).
//
// Descriptors are fetched ahead from arming on, so that frames can follow each other without a gap. A fault in a descriptor
// is reported when its turn comes. A frame that has started is always sent to its end.
module olaf_generator #(
  parameter int DESCRIPTORS = 16384,
  parameter int FLOWS = 1024,
  parameter int TEMPLATES = 16,
  parameter int MAX_BYTES = 9036,
  parameter int DESCRIPTOR_STYLE = olaf_pkg::IN_ULTRA,
  parameter int STYLE = olaf_pkg::IN_BLOCKS
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         forget,    // registers, counters and memories
  input  logic         ce,        // device time passes
  input  logic [63:0]  now,       // the current or last cycle
  input  logic         snapshot,
  input  logic         clear,

  input  logic         arm,
  input  logic         start,
  input  logic         stop,
  input  logic         quit,
  input  logic [31:0]  flows,
  input  logic [31:0]  descriptors,
  input  logic [63:0]  stop_after,
  output logic [2:0]   state,
  output logic         busy,        // configuration and memories do not change
  output logic [63:0]  start_cycle,
  output logic         ev_done,
  output logic         ev_underrun,
  output logic         ev_unsorted,
  output logic         ev_bad_flow,
  output logic         ev_bad_length,

  // The memory proxy. A request waits for its acknowledgement; the caller has already refused addresses out of range.
  input  logic [1:0]   mem_select,
  input  logic [31:0]  mem_address,
  input  logic         mem_read,
  input  logic         mem_write,
  input  logic [31:0]  mem_wdata,
  output logic         mem_ack,
  output logic [31:0]  mem_rdata,
  input  logic         mem_forget,  // pulse
  input  logic         mem_sum,     // pulse: CRC over mem_length words
  input  logic [31:0]  mem_length,
  output logic         mem_busy,
  output logic [31:0]  mem_crc,
  output logic [31:0]  mem_loaded,  // words, of the selected memory

  output logic [63:0]  sent_packets,
  output logic [63:0]  sent_bytes,
  output logic [63:0]  late_packets,
  output logic [63:0]  late_cycles_max,
  output logic [63:0]  late_cycles_sum,

  output logic [511:0] m_tdata,
  output logic [63:0]  m_tkeep,
  output logic         m_tlast,
  output logic         m_tvalid,
  input  logic         m_tready,
  output logic [15:0]  m_tuser_size,
  output logic [15:0]  m_tuser_src,
  output logic [15:0]  m_tuser_dst
);
  localparam int IDLE = olaf_regs::GENERATOR_STATE_STATE_IDLE;
  localparam int ARMED = olaf_regs::GENERATOR_STATE_STATE_ARMED;
  localparam int RUNNING = olaf_regs::GENERATOR_STATE_STATE_RUNNING;
  localparam int STOPPING = olaf_regs::GENERATOR_STATE_STATE_STOPPING;
  localparam int DONE = olaf_regs::GENERATOR_STATE_STATE_DONE;
  localparam int FAILED = olaf_regs::GENERATOR_STATE_STATE_ERROR;

  localparam int ROWS_OF_TEMPLATE = 144;
  localparam int DA = DESCRIPTORS > 1 ? $clog2(DESCRIPTORS) : 1;
  localparam int FA = FLOWS > 1 ? $clog2(FLOWS) : 1;
  localparam int TEMPLATE_ROWS = TEMPLATES * ROWS_OF_TEMPLATE;
  localparam int TA = $clog2(TEMPLATE_ROWS);
  localparam logic [31:0] UNIT = 32'h0001_0000;  // every lane of template 0

  // Faults of a descriptor.
  localparam logic [2:0] SOUND = 3'd0, UNDERRUN = 3'd1, UNSORTED = 3'd2, BAD_FLOW = 3'd3, BAD_LENGTH = 3'd4;

  logic zap;
  assign zap = rst || forget;

  // -------------------------------------------------------------------------------------------------------------- memories
  logic [255:0] d_row;
  logic [511:0] f_row, t_row;
  logic         d_read, f_read, t_read;
  logic [DA-1:0] d_at;
  logic [FA-1:0] f_at;
  logic [TA-1:0] t_at;
  logic         wiping, wiping_all;
  logic [31:0]  wipe_row;
  logic         put_row;       // the row in new_row, into the selected memory
  logic [511:0] new_row;
  olaf_ram #(.WIDTH(256), .DEPTH(DESCRIPTORS), .STYLE(DESCRIPTOR_STYLE)) descriptor_memory (
    .clk, .we((put_row && mem_select == 2'd0) || (wiping && (wiping_all || mem_select == 2'd0) && wipe_row < DESCRIPTORS)),
    .waddr(wiping ? wipe_row[DA-1:0] : mem_address[DA+2:3]), .wdata(new_row[255:0]), .re(d_read), .raddr(d_at), .rdata(d_row)
  );
  olaf_ram #(.WIDTH(512), .DEPTH(FLOWS), .STYLE(STYLE)) flow_memory (
    .clk, .we((put_row && mem_select == 2'd1) || (wiping && (wiping_all || mem_select == 2'd1) && wipe_row < FLOWS)),
    .waddr(wiping ? wipe_row[FA-1:0] : mem_address[FA+3:4]), .wdata(new_row), .re(f_read), .raddr(f_at), .rdata(f_row)
  );
  olaf_ram #(.WIDTH(512), .DEPTH(TEMPLATE_ROWS), .STYLE(STYLE)) template_memory (
    .clk, .we((put_row && mem_select == 2'd2) || (wiping && (wiping_all || mem_select == 2'd2) && wipe_row < TEMPLATE_ROWS)),
    .waddr(wiping ? wipe_row[TA-1:0] : mem_address[TA+3:4]), .wdata(new_row), .re(t_read), .raddr(t_at), .rdata(t_row)
  );

  // ----------------------------------------------------------------------------------------------------- proxy, CRC, wiping
  // The proxy reads a row to return one of its words, or to write it back with another word; the CRC reads a row for each word.
  logic         looking, looking_1, summing, word_1;
  logic [31:0]  loaded_d, loaded_f, loaded_t;
  logic [31:0]  sum_at, crc, look_at;
  logic [3:0]   column_1;
  logic         built_in_1;
  logic         d_free, f_free, t_free, free;
  assign free = mem_select == 2'd0 ? d_free : mem_select == 2'd1 ? f_free : t_free;
  assign looking = (summing ? sum_at < mem_length : (mem_read || mem_write) && !looking_1 && !put_row && !mem_ack) && free && !wiping;
  assign look_at = summing ? sum_at : mem_address;
  assign mem_busy = wiping || summing;
  assign mem_loaded = mem_select == 2'd0 ? loaded_d : mem_select == 2'd1 ? loaded_f : loaded_t;
  assign mem_crc = ~crc;

  function automatic logic [31:0] crc_of(input logic [31:0] old, input logic [31:0] data);
    begin
      crc_of = old ^ data;
      for (int i = 0; i < 32; i++) crc_of = crc_of[0] ? (crc_of >> 1) ^ 32'hEDB8_8320 : crc_of >> 1;
    end
  endfunction

  always_ff @(posedge clk) begin
    logic [31:0] word;
    case (mem_select)
      2'd0: word = d_row[32*{1'b0, column_1[2:0]} +: 32];
      2'd1: word = f_row[32*column_1 +: 32];
      default: word = built_in_1 ? UNIT : t_row[32*column_1 +: 32];
    endcase
    looking_1 <= looking && !summing;
    word_1 <= looking && summing;
    put_row <= looking_1 && mem_write;
    mem_ack <= (looking_1 && mem_read) || put_row;
    if (looking) begin
      column_1 <= {look_at[3] && mem_select != 2'd0, look_at[2:0]};
      built_in_1 <= look_at < 32'(ROWS_OF_TEMPLATE * 16);
    end
    if (looking_1) begin
      mem_rdata <= word;
      case (mem_select)
        2'd0: new_row <= {256'b0, d_row};
        2'd1: new_row <= f_row;
        default: new_row <= t_row;
      endcase
      new_row[32*column_1 +: 32] <= mem_wdata;
    end
    if (zap) begin
      looking_1 <= 1'b0;
      word_1 <= 1'b0;
      put_row <= 1'b0;
      mem_ack <= 1'b0;
      summing <= 1'b0;
      crc <= '1;
      new_row <= '0;
      wiping <= 1'b1;
      wiping_all <= 1'b1;
      wipe_row <= '0;
      loaded_d <= '0;
      loaded_f <= '0;
      loaded_t <= '0;
    end else begin
      if (mem_sum) begin
        summing <= 1'b1;
        sum_at <= '0;
        crc <= '1;
      end else if (summing) begin
        if (looking) sum_at <= sum_at + 32'd1;
        if (word_1) crc <= crc_of(crc, word);
        if (sum_at == mem_length && !word_1) summing <= 1'b0;
      end
      if (mem_forget) begin
        new_row <= '0;
        wiping <= 1'b1;
        wiping_all <= 1'b0;
        wipe_row <= '0;
        if (mem_select == 2'd0) loaded_d <= '0;
        if (mem_select == 2'd1) loaded_f <= '0;
        if (mem_select == 2'd2) loaded_t <= '0;
      end else if (wiping) begin
        wipe_row <= wipe_row + 32'd1;
        if (wipe_row + 32'd1 >= DESCRIPTORS && wipe_row + 32'd1 >= FLOWS && wipe_row + 32'd1 >= TEMPLATE_ROWS) wiping <= 1'b0;
      end
      if (put_row) begin
        if (mem_select == 2'd0 && mem_address >= loaded_d) loaded_d <= mem_address + 32'd1;
        if (mem_select == 2'd1 && mem_address >= loaded_f) loaded_f <= mem_address + 32'd1;
        if (mem_select == 2'd2 && mem_address >= loaded_t) loaded_t <= mem_address + 32'd1;
      end
    end
  end

  // ------------------------------------------------------------------------------------------------------- fetching ahead
  localparam int AHEAD = 8;
  (* ram_style = "distributed" *) logic [463:0] ahead [0:AHEAD-1];  // headers without the generation time
  (* ram_style = "distributed" *) logic [71:0]  beside [0:AHEAD-1];  // their other properties
  logic [2:0]  put, get;
  logic [31:0] limit, played, fetched;
  logic        fetching, broken;
  logic [3:0]  held, under_way;
  logic        p1, p2, p3, take;
  logic [47:0] last_time;
  assign fetching = (32'(state) == ARMED || 32'(state) == RUNNING) && !arm && !broken && fetched < limit &&
                    32'(held) + 32'(under_way) < AHEAD - 1;
  assign under_way = {3'b0, p1} + {3'b0, p2} + {3'b0, p3};
  assign d_free = !fetching;
  assign d_read = fetching || (looking && mem_select == 2'd0);
  assign d_at = fetching ? fetched[DA-1:0] : look_at[DA+2:3];

  // P1: the descriptor has been read.
  logic [47:0] d_time;
  logic [15:0] d_flow, d_length;
  logic [3:0]  d_flags;
  logic [31:0] d_seq, d_reward, d_end;
  logic [2:0]  fault_1, fault_2, fault_3;
  assign d_time = {d_row[47:32], d_row[31:0]};
  assign d_flow = d_row[63:48];
  assign d_length = d_row[79:64];
  assign d_flags = d_row[83:80];
  assign d_seq = d_row[127:96];
  assign d_reward = d_row[159:128];
  assign d_end = fetched << 3;  // the next one to fetch is the following one
  always_comb begin
    if (d_end > loaded_d) fault_1 = UNDERRUN;
    else if (d_time < last_time) fault_1 = UNSORTED;
    else if ({16'b0, d_flow} >= flows) fault_1 = BAD_FLOW;
    else fault_1 = SOUND;
  end
  assign f_free = !p1;
  assign f_read = p1 || (looking && mem_select == 2'd1);
  assign f_at = p1 ? d_flow[FA-1:0] : look_at[FA+3:4];

  // P2: its flow has been read.
  logic [47:0] time_2, time_3;
  logic [15:0] length_2, size_2, size_3, template_2;
  logic [3:0]  flags_2;
  logic [2:0]  flags_3;
  logic [31:0] seq_2, seq_3, reward_2, reward_3;
  logic [15:0] f_dest_port;
  assign size_2 = length_2 == '0 ? f_row[143:128] : length_2;
  assign template_2 = f_row[159:144];
  assign f_dest_port = f_row[79:64];

  // P3: its header.
  logic [31:0] source_3, dest_3, identity_3;
  logic [15:0] source_port_3, dest_port_3;
  logic [95:0] macs_3;
  logic [4:0]  template_3;
  logic [18:0] ip_sum_3;
  logic [16:0] ip_fold;
  logic [15:0] ip_length, udp_length, ip_check;
  assign ip_length = size_3 - 16'd14;
  assign udp_length = (size_3 - 16'd34) ^ {13'b0, flags_3[2], 2'b0};
  assign ip_fold = {1'b0, ip_sum_3[15:0]} + {14'b0, ip_sum_3[18:16]};
  assign ip_check = ~(ip_fold[15:0] + {15'b0, ip_fold[16]}) ^ {15'b0, flags_3[1]};

  always_ff @(posedge clk) begin
    if (p3) beside[put] <= {time_3, fault_3, size_3, template_3};
    if (p3) ahead[put] <= {
    reward_3[7:0], reward_3[15:8], reward_3[23:16], reward_3[31:24],
    16'h0100,
    seq_3[7:0], seq_3[15:8], seq_3[23:16], seq_3[31:24],
    identity_3[7:0], identity_3[15:8], identity_3[23:16], identity_3[31:24],
    6'b010100, flags_3[0], 1'b0, 8'h4f,
    16'h0000, udp_length[7:0], udp_length[15:8],
    dest_port_3[7:0], dest_port_3[15:8], source_port_3[7:0], source_port_3[15:8],
    dest_3[7:0], dest_3[15:8], dest_3[23:16], dest_3[31:24], source_3[7:0], source_3[15:8], source_3[23:16], source_3[31:24],
    ip_check[7:0], ip_check[15:8], 8'd17, 8'd64, 16'h0040, 16'h0000, ip_length[7:0], ip_length[15:8], 8'h00, 8'h45,
    16'h0008, macs_3
    };
  end

  always_ff @(posedge clk) begin
    if (zap || arm || quit) begin
      fetched <= '0;
      p1 <= 1'b0;
      p2 <= 1'b0;
      p3 <= 1'b0;
      broken <= 1'b0;
      last_time <= '0;
    end else begin
      p1 <= fetching;
      p2 <= p1;
      p3 <= p2;
      if (fetching) fetched <= fetched + 32'd1;
      if (p1) begin
        last_time <= d_time;
        if (fault_1 != SOUND) broken <= 1'b1;
      end
    end
    if (p1) begin
      fault_2 <= fault_1;
      time_2 <= d_time;
      length_2 <= d_length;
      flags_2 <= d_flags[3:0];
      seq_2 <= d_seq;
      reward_2 <= d_reward;
    end
    if (p2) begin
      if (fault_2 != SOUND) fault_3 <= fault_2;
      else if (!f_row[256] || 32'(template_2) >= TEMPLATES) fault_3 <= BAD_FLOW;
      else if (size_2 < 16'd64 || 32'(size_2) > MAX_BYTES || size_2[1:0] != '0) fault_3 <= BAD_LENGTH;
      else fault_3 <= SOUND;
      time_3 <= time_2;
      size_3 <= size_2;
      flags_3 <= flags_2[2:0];
      seq_3 <= seq_2;
      reward_3 <= reward_2;
      template_3 <= template_2[4:0];
      source_3 <= f_row[31:0];
      dest_3 <= f_row[63:32];
      source_port_3 <= f_row[95:80];
      dest_port_3 <= flags_2[3] ? 16'd9 : f_dest_port;
      identity_3 <= {f_row[127:112], f_row[111:96]};
      macs_3 <= {
        f_row[215:208], f_row[223:216], f_row[167:160], f_row[175:168], f_row[183:176], f_row[191:184],
        f_row[231:224], f_row[239:232], f_row[247:240], f_row[255:248], f_row[199:192], f_row[207:200]
      };
      ip_sum_3 <= 19'h0c511 - 19'd14 + {3'b0, size_2} + {3'b0, f_row[15:0]} + {3'b0, f_row[31:16]} + {3'b0, f_row[47:32]} +
                  {3'b0, f_row[63:48]};
    end
  end

  // -------------------------------------------------------------------------------------------------------- what comes next
  logic [47:0]  h_time;
  logic [2:0]   h_fault;
  logic [15:0]  h_size;
  logic [4:0]   h_template;
  assign {h_time, h_fault, h_size, h_template} = beside[get];
  always_ff @(posedge clk) begin
    if (zap || arm || quit) begin
      put <= '0;
      get <= '0;
      held <= '0;
    end else begin
      if (p3) put <= put + 3'd1;
      if (take) get <= get + 3'd1;
      held <= held + {3'b0, p3} - {3'b0, take};
    end
  end

  // ------------------------------------------------------------------------------------------------------------- firing
  logic        active, last_out, ending, fault, fire, restore;
  logic [63:0] due, lateness;
  logic [45:0] since;      // the run clock; a cycle is 4 ns
  logic [7:0]  left;       // beats after the one on the bus
  logic [15:0] size;
  logic        constant;   // template 0
  logic [TA-1:0] row;      // of the beat after the one on the bus
  logic        advance;
  assign due = start_cycle + {16'b0, h_time};
  assign since = now[45:0] - start_cycle[45:0];
  assign lateness = now - due;
  assign ending = (32'(state) == RUNNING && played >= limit) || 32'(state) == STOPPING;
  assign fault = 32'(state) == RUNNING && held != '0 && h_fault != SOUND && !ending;
  assign advance = ce && active && m_tready;
  assign last_out = advance && left == '0;
  assign fire = ce && 32'(state) == RUNNING && !ending && held != '0 && h_fault == SOUND && now >= due && (!active || last_out);
  assign take = fire;
  assign busy = 32'(state) == ARMED || 32'(state) == RUNNING || 32'(state) == STOPPING;
  assign ev_done = ce && ending && (!active || last_out) && !quit;
  assign ev_underrun = fault && h_fault == UNDERRUN;
  assign ev_unsorted = fault && h_fault == UNSORTED;
  assign ev_bad_flow = fault && h_fault == BAD_FLOW;
  assign ev_bad_length = fault && h_fault == BAD_LENGTH;

  always_ff @(posedge clk) begin
    if (zap) begin
      state <= 3'(IDLE);
      start_cycle <= '0;
      played <= '0;
    end else begin
      if (fire) played <= played + 32'd1;
      if (quit) state <= 3'(IDLE);
      else if (arm) begin
        state <= 3'(ARMED);
        played <= '0;
        limit <= stop_after != '0 && stop_after < {32'b0, descriptors} ? stop_after[31:0] : descriptors;
      end else if (start) begin
        state <= 3'(RUNNING);
        start_cycle <= now + 64'd1;
      end else if (stop && 32'(state) == ARMED) state <= 3'(IDLE);
      else if (ev_done) state <= 3'(DONE);
      else if (fault) state <= 3'(FAILED);
      else if (ending || (stop && 32'(state) == RUNNING)) state <= 3'(STOPPING);
    end
  end

  // The row of the next beat is read when the previous beat leaves. The proxy reads between frames, or while time is stopped;
  // then the row is read again.
  logic [TA-1:0] h_row;
  assign h_row = TA'(32'(h_template) * ROWS_OF_TEMPLATE);
  assign t_free = (!active || !ce) && !fire;
  assign t_read = fire || advance || restore || (looking && mem_select == 2'd2);
  assign t_at = fire ? h_row : restore ? row : advance ? row + 1'b1 : look_at[TA+3:4];

  always_ff @(posedge clk) begin
    logic [463:0] head;
    if (rst) begin
      active <= 1'b0;
      restore <= 1'b0;
    end else begin
      restore <= looking && mem_select == 2'd2;
      if (fire) active <= 1'b1;
      else if (last_out) active <= 1'b0;
    end
    if (fire) begin
      head = ahead[get];
      m_tdata <= {
        head[463:432], since[5:0], 2'b00, since[13:6], since[21:14], since[29:22], since[37:30], since[45:38], head[431:0]
      };
      left <= 8'((32'(h_size) + 32'd63) >> 6) - 8'd1;
      size <= h_size;
      constant <= h_template == '0;
      row <= h_row;
    end else if (advance) begin
      if (constant) m_tdata <= {16{UNIT[7:0], UNIT[15:8], UNIT[23:16], UNIT[31:24]}};
      else
        for (int i = 0; i < 16; i++)
          m_tdata[32*i +: 32] <= {t_row[32*i +: 8], t_row[32*i+8 +: 8], t_row[32*i+16 +: 8], t_row[32*i+24 +: 8]};
      left <= left - 8'd1;
      row <= row + 1'b1;
    end
  end
  assign m_tvalid = active;
  assign m_tlast = left == '0;
  assign m_tkeep = left == '0 && size[5:0] != '0 ? ~(64'hffff_ffff_ffff_ffff << size[5:0]) : '1;
  assign m_tuser_size = size;
  assign m_tuser_src = '0;
  assign m_tuser_dst = 16'h0040;  // the first network port

  // ------------------------------------------------------------------------------------------------------------ counters
  olaf_counter #(.W(1)) c_packets (.clk, .rst(zap), .snapshot, .clear, .gain(fire), .latched(sent_packets));
  olaf_counter #(.W(14)) c_bytes (.clk, .rst(zap), .snapshot, .clear, .gain(fire ? h_size[13:0] : '0), .latched(sent_bytes));
  olaf_counter #(.W(1)) c_late (.clk, .rst(zap), .snapshot, .clear, .gain(fire && lateness != '0), .latched(late_packets));
  olaf_counter #(.W(48)) c_late_sum (.clk, .rst(zap), .snapshot, .clear, .gain(fire ? lateness[47:0] : '0), .latched(late_cycles_sum));
  logic [63:0] longest, longest_now;
  assign longest_now = fire && lateness > longest ? lateness : longest;
  always_ff @(posedge clk) begin
    longest <= zap || clear ? '0 : longest_now;
    if (zap) late_cycles_max <= '0;
    else if (snapshot) late_cycles_max <= longest_now;
  end
endmodule
