// Store-and-forward input: frames arrive in beats of 64 bytes, are checked (docs/reference/semantics.md, Update on the wire),
// and wait as a whole until the queue has decided about them.
//
// A frame arrives with its last beat. A frame that is longer than the build allows is discarded and reported as malformed.
// A frame is admitted only if there is room for the longest one, so its beats never stop half-way.
module olaf_ingress #(
  parameter int MAX_BYTES = 9036,   // of any frame
  parameter int OLAF_BYTES = 9036,  // of an update
  parameter int CLUSTERS = 256,
  parameter int FRAMES = 64,
  parameter int MAX_BEATS = (MAX_BYTES + 63) / 64,
  parameter int BUFFER = 512,       // beats, a power of two
  parameter int STYLE = olaf_pkg::IN_BLOCKS,
  parameter int BA = $clog2(BUFFER),
  parameter int FA = $clog2(FRAMES)
) (
  input  logic         clk,
  input  logic         rst,
  input  logic         forget,  // uncounted contents
  input  logic         ce,

  input  logic [511:0] s_tdata,
  input  logic [63:0]  s_tkeep,
  input  logic         s_tlast,
  input  logic         s_tvalid,
  output logic         s_tready,
  input  logic [15:0]  s_tuser_src,
  input  logic [15:0]  s_tuser_dst,
  input  logic         s_tuser_known,
  input  logic [15:0]  s_tuser_cluster,
  input  logic [15:0]  s_tuser_worker,

  output logic         f_valid,
  input  logic         f_take,
  output logic [BA-1:0] f_base,
  output logic [7:0]   f_beats,
  output logic [15:0]  f_bytes,
  output logic [1:0]   f_verdict,
  output logic         f_misidentified,
  output logic [15:0]  f_cluster,
  output logic [15:0]  f_worker,
  output logic [15:0]  f_src,
  output logic [15:0]  f_dst,
  output logic [31:0]  f_seq,
  output logic [47:0]  f_gen,
  output logic [31:0]  f_reward,
  output logic [15:0]  f_count,
  output logic         f_retransmission,
  output logic [319:0] f_outer,

  input  logic          rd_en,  // data two cycles later
  input  logic [BA-1:0] rd_addr,
  output logic [511:0]  rd_data
);

  localparam int OLAF_HEADER = 193;
  localparam int ROOM = BUFFER - 2 * MAX_BEATS - 8;  // undecided beats with which another frame may start
  localparam logic [15:0] MAX_PAYLOAD = 16'(OLAF_BYTES - 64);

  // ---------------------------------------------------------------------------------------------------------------- beats
  logic          open, swallow;  // a frame has begun whose rest is discarded
  logic [BA-1:0] base;
  logic [7:0]    beats;            // of the current frame so far
  logic          overlong;
  logic [BA:0]   used;
  logic [FA:0]   frames;
  logic [FA-1:0] wr, rd;

  logic accept, first, keep, ends;
  assign s_tready = ce && (open || (32'(used) <= ROOM && 32'(frames) < FRAMES));
  assign accept = s_tvalid && s_tready && !(swallow && open);
  assign first = accept && !open;
  assign ends = accept && s_tlast;
  assign keep = accept && !(open && overlong) && !(open && 32'(beats) == MAX_BEATS);

  logic [7:0] beats_now;  // including the one that is being accepted
  logic       overlong_now;
  assign beats_now = open ? beats + 8'd1 : 8'd1;
  assign overlong_now = open && (overlong || 32'(beats) == MAX_BEATS);

  function automatic logic [6:0] ones(input logic [63:0] keep_bits);
    begin
      ones = '0;
      for (int i = 0; i < 64; i++) ones = ones + {6'b0, keep_bits[i]};
    end
  endfunction

  logic [BA-1:0] at;
  assign at = base + (open ? BA'(beats) : '0);
  logic [511:0] beat_q;
  olaf_ram #(.WIDTH(512), .DEPTH(BUFFER), .STYLE(STYLE)) beat_memory (
    .clk, .we(keep), .waddr(at), .wdata(s_tdata), .re(ce && rd_en), .raddr(rd_addr), .rdata(beat_q)
  );
  logic rd_en_1;
  always_ff @(posedge clk) begin
    if (ce) begin
      rd_en_1 <= rd_en;
      if (rd_en_1) rd_data <= beat_q;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) base <= '0;
    if (rst || forget) begin
      // A frame that the bus has begun can no longer be accepted.
      swallow <= (open || first) && !(s_tvalid && s_tready && s_tlast);
      open <= (open || first) && !(s_tvalid && s_tready && s_tlast);
      beats <= '0;
      overlong <= 1'b0;
      used <= '0;
      frames <= '0;
      wr <= '0;
      rd <= '0;
    end else if (ce) begin
      if (s_tvalid && s_tready) begin
        open <= !s_tlast;
        if (s_tlast) swallow <= 1'b0;
      end
      if (accept) begin
        if (!overlong_now) beats <= beats_now;
        overlong <= overlong_now;
      end
      if (ends) begin
        if (!overlong_now) base <= base + BA'(beats_now);
        wr <= wr + 1'b1;
      end
      if (f_take) rd <= rd + 1'b1;
      used <= used + {{BA{1'b0}}, keep} - (f_take ? (BA+1)'(f_beats) : '0) - (ends && overlong_now ? (BA+1)'(MAX_BEATS) : '0);
      frames <= frames + {{FA{1'b0}}, ends} - {{FA{1'b0}}, f_take};
    end
  end
  assign f_valid = frames != 0;

  // --------------------------------------------------------------------------------------------------------------- headers
  function automatic logic [15:0] ip_sum(input logic [159:0] header);
    logic [19:0] total;
    logic [16:0] folded;
    begin
      total = '0;
      for (int i = 0; i < 10; i++) total = total + {4'b0, header[16*i +: 8], header[16*i+8 +: 8]};
      folded = {1'b0, total[15:0]} + {13'b0, total[19:16]};
      ip_sum = folded[15:0] + {15'b0, folded[16]};
    end
  endfunction

  // Stage 1, at the end of the cycle in which a beat is taken.
  logic        looks_olaf, ip_right, fragmented, udp_summed, known, beyond, named_right;
  logic [15:0] ip_length_1, udp_length_1, count_1;
  logic [6:0]  bits_1;  // except retransmission
  always_ff @(posedge clk) begin
    if (first) begin
      // EtherType, version and length of the header, protocol, fragment offset, UDP port, magic.
      looks_olaf <= {s_tdata[103:96], s_tdata[111:104]} == 16'h0800 && s_tdata[119:112] == 8'h45 && s_tdata[191:184] == 8'd17 &&
                    {s_tdata[164:160], s_tdata[175:168]} == '0 && {s_tdata[295:288], s_tdata[303:296]} == 16'd20300 &&
                    s_tdata[343:336] == 8'h4f;
      ip_right <= ip_sum(s_tdata[271:112]) == 16'hffff;
      fragmented <= s_tdata[165];
      udp_summed <= s_tdata[335:320] != '0;
      ip_length_1 <= {s_tdata[135:128], s_tdata[143:136]};
      udp_length_1 <= {s_tdata[311:304], s_tdata[319:312]};
      count_1 <= {s_tdata[423:416], s_tdata[431:424]};
      bits_1 <= {s_tdata[351:346], s_tdata[344]};
      known <= s_tuser_known;
      beyond <= 32'(s_tuser_cluster) >= CLUSTERS;
      named_right <= {s_tdata[359:352], s_tdata[367:360]} == s_tuser_cluster && {s_tdata[375:368], s_tdata[383:376]} == s_tuser_worker;
    end
  end

  logic          ended_1, ended_2, ended_3, overlong_1;
  logic [15:0]   bytes_1;
  logic [FA-1:0] wr_1, wr_2, wr_3;
  always_ff @(posedge clk) begin
    if (ce) begin
      ended_1 <= ends && !rst && !forget;
      ended_2 <= ended_1;
      ended_3 <= ended_2;
      if (ends) begin
        bytes_1 <= {2'b0, beats_now - 8'd1, 6'b0} + {9'b0, ones(s_tkeep)};
        overlong_1 <= overlong_now;
        wr_1 <= wr;
      end
      wr_2 <= wr_1;
      wr_3 <= wr_2;
    end
  end

  // The sum over UDP and its pseudo header, if the frame carries a checksum.
  logic         sums, summed_1, summed_2, first_1, first_2;
  logic [127:0] part_1;  // eight sums of four words
  logic [31:0]  sum_2, sum_3;
  assign sums = accept && (first ? s_tdata[335:320] != '0 : udp_summed);
  always_ff @(posedge clk) begin
    if (ce) begin
      summed_1 <= sums;
      summed_2 <= summed_1;
      first_1 <= first;
      first_2 <= first_1;
      if (sums)
        for (int g = 0; g < 8; g++) part_1[16*g +: 16] <= partial(first, s_tdata[64*g +: 64], s_tkeep[8*g +: 8], g);
      if (summed_1) begin
        sum_2 <= {16'b0, part_1[15:0]} + {16'b0, part_1[31:16]} + {16'b0, part_1[47:32]} + {16'b0, part_1[63:48]} +
                 {16'b0, part_1[79:64]} + {16'b0, part_1[95:80]} + {16'b0, part_1[111:96]} + {16'b0, part_1[127:112]} +
                 (first_1 ? {16'b0, udp_length_1} + 32'd17 : 32'd0);
      end
      if (summed_2) sum_3 <= first_2 ? sum_2 : sum_3 + sum_2;
    end
  end

  // A ones' complement sum of four words; in the first beat, addresses and the bytes after them count.
  function automatic logic [15:0] partial(input logic in_first, input logic [63:0] data, input logic [7:0] there, input int g);
    logic [17:0] s;
    logic [16:0] folded;
    begin
      s = '0;
      for (int i = 0; i < 4; i++)
        if (!in_first || 4*g + i >= 13)
          s = s + {2'b0, there[2*i] ? data[16*i +: 8] : 8'd0, there[2*i+1] ? data[16*i+8 +: 8] : 8'd0};
      folded = {1'b0, s[15:0]} + {15'b0, s[17:16]};
      partial = folded[15:0] + {15'b0, folded[16]};
    end
  endfunction

  // Stage 2: everything that needs no sum.
  logic        claims_2, broken_2, update_2, needs_sum_2, known_2, beyond_2, misnamed_2, overlong_2;
  logic        claims_3, broken_3, update_3, needs_sum_3, known_3, beyond_3, misnamed_3, overlong_3;
  logic [15:0] payload;
  logic        is_update, is_ack;
  assign payload = udp_length_1 - 16'd30;
  assign is_update = bits_1[4:3] == 2'd1;
  assign is_ack = bits_1[4:3] == 2'd2;
  always_ff @(posedge clk) begin
    if (ce) begin
      if (ended_1) begin
        claims_2 <= looks_olaf && bytes_1 > 16'd42;
        broken_2 <= bytes_1 < 16'd64 || bytes_1 != ip_length_1 + 16'd14 || !ip_right || fragmented ||
                    udp_length_1 != ip_length_1 - 16'd20 || bits_1[6:5] != 2'd1 || !(is_update || is_ack) || bits_1[2:1] != '0 ||
                    (is_update && count_1 == '0) || bits_1[0] != (count_1 > 16'd1) || (is_ack && payload < 16'd8) ||
                    payload[1:0] != '0 || payload > MAX_PAYLOAD;
        update_2 <= is_update;
        needs_sum_2 <= udp_summed;
        known_2 <= known;
        beyond_2 <= beyond;
        misnamed_2 <= !named_right;
        overlong_2 <= overlong_1;
      end
      if (ended_2) begin
        claims_3 <= claims_2;
        broken_3 <= broken_2;
        update_3 <= update_2;
        needs_sum_3 <= needs_sum_2;
        known_3 <= known_2;
        beyond_3 <= beyond_2;
        misnamed_3 <= misnamed_2;
        overlong_3 <= overlong_2;
      end
    end
  end

  // Stage 3: the verdict, before the queue decides in the fourth cycle after the last beat.
  logic [16:0] folded_3, folded_4;
  logic [1:0]  verdict_3;
  assign folded_3 = {1'b0, sum_3[15:0]} + {1'b0, sum_3[31:16]};
  assign folded_4 = {1'b0, folded_3[15:0]} + {16'b0, folded_3[16]};
  always_comb begin
    if (overlong_3 || (claims_3 && (broken_3 || (needs_sum_3 && folded_4 != 17'h0ffff))))
      verdict_3 = olaf_pkg::IS_MALFORMED;
    else if (!claims_3 || !update_3 || !known_3) verdict_3 = olaf_pkg::IS_BYPASSED;
    else if (beyond_3) verdict_3 = olaf_pkg::IS_BEYOND;
    else verdict_3 = olaf_pkg::IS_UPDATE;
  end

  // Data of a frame that waits for a decision: from its first beat, from its last beat, its length, and the verdict. The first
  // three are available before the queue multiplies.
  (* ram_style = "distributed" *) logic [319:0]           outers [0:FRAMES-1];
  (* ram_style = "distributed" *) logic [OLAF_HEADER-1:0] headers [0:FRAMES-1];
  (* ram_style = "distributed" *) logic [BA+7:0]          shapes [0:FRAMES-1];
  (* ram_style = "distributed" *) logic [15:0]            lengths [0:FRAMES-1];
  (* ram_style = "distributed" *) logic [2:0]             verdicts [0:FRAMES-1];
  always_ff @(posedge clk) begin
    if (first) outers[wr] <= s_tdata[319:0];
    if (first) headers[wr] <= {
      s_tdata[391:384], s_tdata[399:392], s_tdata[407:400], s_tdata[415:408],
      s_tdata[439:432], s_tdata[447:440], s_tdata[455:448], s_tdata[463:456], s_tdata[471:464], s_tdata[479:472],
      s_tdata[487:480], s_tdata[495:488], s_tdata[503:496], s_tdata[511:504],
      s_tdata[423:416], s_tdata[431:424], s_tdata[345], s_tuser_cluster, s_tuser_worker, s_tuser_src, s_tuser_dst
    };
    if (ends) shapes[wr] <= {base, overlong_now ? 8'd0 : beats_now};
    if (ce && ended_1) lengths[wr_1] <= bytes_1;
    if (ce && ended_3) verdicts[wr_3] <= {misnamed_3, verdict_3};
  end
  assign f_outer = outers[rd];
  assign {f_seq, f_gen, f_reward, f_count, f_retransmission, f_cluster, f_worker, f_src, f_dst} = headers[rd];
  assign {f_base, f_beats} = shapes[rd];
  assign f_bytes = lengths[rd];
  assign {f_misidentified, f_verdict} = verdicts[rd];
endmodule
