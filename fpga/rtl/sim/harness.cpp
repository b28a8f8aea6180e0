// The Verilated card as a child process. It reads commands from standard input and writes answers and records to
// standard output, both little-endian and without padding. Output is flushed before the process waits for input, so
// that many commands can be sent at once. The process exits at the end of its input. fpga/rtl/child.go is the other
// side.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "Volaf_sim.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

constexpr uint32_t protocol = 1;

// ------------------------------------------------------------------------------------------------------------------- pipes

class Pipes {
 public:
  template <typename T> T get() {
    T v;
    read(&v, sizeof v);
    return v;
  }
  void read(void *to, size_t n) {
    auto *p = static_cast<uint8_t *>(to);
    while (n > 0) {
      if (at_ == in_.size()) refill();
      const size_t part = n < in_.size() - at_ ? n : in_.size() - at_;
      memcpy(p, in_.data() + at_, part);
      p += part;
      at_ += part;
      n -= part;
    }
  }
  template <typename T> void put(T v) { write(&v, sizeof v); }
  void write(const void *from, size_t n) {
    const auto *p = static_cast<const uint8_t *>(from);
    for (size_t part; n > 0; n -= part, p += part) {
      if (held_ == sizeof out_) flush();
      part = n < sizeof out_ - held_ ? n : sizeof out_ - held_;
      memcpy(out_ + held_, p, part);
      held_ += part;
    }
  }
  void flush() {
    for (size_t done = 0; done < held_;) {
      const ssize_t n = ::write(1, out_ + done, held_ - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) exit(0);
      done += n;
    }
    held_ = 0;
  }

 private:
  void refill() {
    flush();
    in_.resize(1 << 16);
    ssize_t n;
    do n = ::read(0, in_.data(), in_.size());
    while (n < 0 && errno == EINTR);
    if (n <= 0) exit(0);
    in_.resize(n);
    at_ = 0;
  }
  std::vector<uint8_t> in_;
  size_t at_ = 0, held_ = 0;
  uint8_t out_[1 << 15];  // half of a pipe's capacity, so that both sides work at once
};

// ------------------------------------------------------------------------------------------------------------------- card

struct Identity {
  uint8_t known;
  uint16_t cluster, worker;
};

struct Frame {
  uint64_t cycle;  // the first beat arrives in this cycle, or as soon after it as the input accepts it
  Identity who;
  uint16_t src, dst;
  std::vector<uint8_t> bytes;
};

// Ready decides when a consumer takes a beat: always, or with probability of_65536 / 65536.
struct Ready {
  uint32_t of_65536 = 65536;
  uint64_t state = 1;
  bool next() {
    if (of_65536 >= 65536) return true;
    if (of_65536 == 0) return false;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state & 0xffff) < of_65536;
  }
};

struct Beat {
  uint8_t data[64];
  uint64_t keep, ends;
};

// Kinds of records to report, as bits of the argument of command 'm'.
enum : uint32_t { report_decisions = 1, report_log = 2, report_lanes = 4, report_bypassed = 8, report_wire = 16 };

class Card {
 public:
  explicit Card(Pipes &pipes) : io_(pipes) {
    v_.next_rst = 1;
    for (int i = 0; i < 4; i++) clock();
    v_.next_rst = 0;
    clock();
    clock();
    while (read(status_of_memories, nullptr) & 1) {}
    const uint64_t before = clocks_;
    write(scratch, 0x5a5aa5a5);
    way_ = clocks_ - before - 1;  // the response follows the effect by one clock
  }
  ~Card() { v_.final(); }

  void serve() {
    for (;;) switch (io_.get<uint8_t>()) {
        case 'h': hello(); break;
        case 'r': answer_read(); break;
        case 'w': answer_write(); break;
        case 'p': take_posted(); break;
        case 'b': answer_burst(); break;
        case 'g': answer_run(); break;
        case 'i': take_frame(); break;
        case 'o': take_ready(); break;
        case 'm': report_ = io_.get<uint32_t>(); break;
        case 'k': known_.clear(); break;
        case 'v': answer_vector(); break;
        case 's': answer_step(); break;
        case 'z': answer_idle(); break;
        default: exit(3);
      }
  }

 private:
  static constexpr uint32_t status_of_memories = 0x3098, command_of_memories = 0x3094, scratch = 0x20;

  // clock simulates one clock. Every edge of clk counts as one. Inputs that were set before take effect in the next
  // clock.
  void clock() {
    v_.next_write = writes_in_ == 0;
    if (writes_in_ >= 0) writes_in_--;
    v_.clk = !v_.clk;
    v_.eval();
    clocks_++;
  }

  // prime lets time pass from the next clock on; with run, the output's clock runs too.
  void prime(bool run, bool fluid) {
    v_.next_ce = 1;
    v_.next_run = run;
    v_.next_fluid = fluid;
    clock();
    run_ = run;
  }

  // -------------------------------------------------------------------------------------------------------------- registers

  // AXI-Lite accesses take clocks, but no cycles of the card's time.
  uint8_t write(uint32_t address, uint32_t value) {
    post(address, value, way_);
    do clock();
    while (!v_.s_axil_bvalid);
    return v_.s_axil_bresp;
  }
  // post schedules a write that takes effect after the given number of clocks. It does not wait for the response.
  void post(uint32_t address, uint32_t value, int clocks) {
    v_.next_address = address;
    v_.next_data = value;
    writes_in_ = clocks - way_;
    if (writes_in_ < 0) exit(3);
  }
  uint32_t read(uint32_t address, uint8_t *response) {
    v_.next_address = address;
    v_.next_read = 1;
    clock();
    v_.next_read = 0;
    do clock();
    while (!v_.s_axil_rvalid);
    if (response) *response = v_.s_axil_rresp;
    return v_.s_axil_rdata;
  }

  void hello() {
    io_.put<uint32_t>(protocol);
    io_.put<uint64_t>(v_.test_cycles);
  }
  void answer_read() {
    uint8_t response;
    const uint32_t value = read(io_.get<uint32_t>(), &response);
    io_.put(response);
    io_.put(value);
  }
  void answer_write() {
    const uint32_t address = io_.get<uint32_t>(), value = io_.get<uint32_t>();
    const uint8_t response = write(address, value);
    if (address == command_of_memories && response == 0)
      while (read(status_of_memories, nullptr) & 1) {}
    io_.put(response);
  }
  void take_posted() {
    const uint32_t address = io_.get<uint32_t>(), value = io_.get<uint32_t>();
    post(address, value, io_.get<uint16_t>());
  }
  // answer_burst writes words to one address. After the first rejected word it discards the rest.
  void answer_burst() {
    const uint32_t address = io_.get<uint32_t>(), n = io_.get<uint32_t>();
    uint8_t response = 0;
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t value = io_.get<uint32_t>();
      if (response == 0) response = write(address, value);
    }
    io_.put(response);
  }

  // ------------------------------------------------------------------------------------------------------------------- time

  void take_frame() {
    Frame f;
    f.cycle = io_.get<uint64_t>();
    f.who.known = io_.get<uint8_t>();
    f.who.cluster = io_.get<uint16_t>();
    f.who.worker = io_.get<uint16_t>();
    f.src = io_.get<uint16_t>();
    f.dst = io_.get<uint16_t>();
    f.bytes.resize(io_.get<uint16_t>());
    io_.read(f.bytes.data(), f.bytes.size());
    if (!f.bytes.empty()) frames_.push_back(std::move(f));
  }
  void take_ready() {
    Ready &r = io_.get<uint8_t>() ? bypass_ready_ : ready_;
    r.of_65536 = io_.get<uint32_t>();
    r.state = io_.get<uint64_t>() | 1;
  }

  // answer_run lets the requested number of cycles pass. If until_rest is set, it stops as soon as nothing is in
  // progress.
  void answer_run() {
    const uint64_t cycles = io_.get<uint64_t>();
    const bool until_rest = io_.get<uint8_t>() != 0;
    if (cycles > 0) prime(true, false);
    for (uint64_t i = 1; v_.next_ce; i++) {
      v_.next_ce = i < cycles && !(until_rest && resting());
      cycle();
    }
    io_.put<uint8_t>('g');
    io_.put<uint64_t>(v_.test_cycles);
    io_.put<uint64_t>(clocks_);
  }

  bool resting() const { return frames_.empty() && sent_ == 0 && v_.test_resting && ends_.empty(); }

  // offer identifies the sender of the generator's frame, or puts the next beat of an injected frame on the input.
  void offer(uint64_t now) {
    v_.inject = 0;
    if (v_.m_axis_gen_tvalid && !v_.m_axis_gen_wire) {
      if (v_.m_axis_gen_first) identify(look_up(address_at(v_.m_axis_gen_tdata.data())));
      return;
    }
    if (frames_.empty() || (sent_ == 0 && frames_.front().cycle > now)) return;
    const Frame &f = frames_.front();
    const size_t left = f.bytes.size() - sent_, n = left < 64 ? left : 64;
    uint8_t beat[64] = {};
    memcpy(beat, f.bytes.data() + sent_, n);
    memcpy(v_.inject_tdata.data(), beat, 64);
    v_.inject_tkeep = n == 64 ? ~0ull : (1ull << n) - 1;
    v_.inject_tlast = left <= 64;
    v_.inject = 1;
    identify(f.who);
    if (v_.taken) {
      sent_ += n;
      if (sent_ == f.bytes.size()) {
        sent_ = 0;
        frames_.pop_front();
      }
    }
  }
  static uint32_t address_at(const void *beat) {
    uint32_t source;
    memcpy(&source, static_cast<const uint8_t *>(beat) + 26, 4);
    return source;
  }
  void identify(const Identity &who) {
    v_.known = who.known;
    v_.cluster = who.cluster;
    v_.worker = who.worker;
  }
  const Identity &look_up(uint32_t source) {
    const auto found = known_.find(source);
    if (found != known_.end()) return found->second;
    io_.put<uint8_t>('a');
    io_.put(source);
    Identity who;
    who.known = io_.get<uint8_t>();
    who.cluster = io_.get<uint16_t>();
    who.worker = io_.get<uint16_t>();
    return known_[source] = who;
  }

  // cycle simulates one clock in which time passes. It takes and reports the frames that arrive and leave in it.
  // The current value of next_ready is in effect, because it was set one clock ago.
  void cycle() {
    const uint64_t now = v_.test_cycles + run_;
    if (run_) offer(now);
    take(now);
    clock();
    run_ = v_.next_run;
  }
  void take(uint64_t now) {
    if (v_.test_fin) ends_.push_back(now);
    if (report_) report(now);
    if (v_.m_axis_tvalid && v_.next_ready) leave(now);
    if (waits_ || (v_.m_axis_tvalid && !v_.next_ready)) hold();
    if (v_.m_axis_bypass_tvalid && v_.next_bypass_ready && (report_ & report_bypassed)) pass(now);
    if (v_.m_axis_gen_tvalid && v_.m_axis_gen_wire && run_ && (report_ & report_wire)) send(now);
    v_.next_ready = ready_.next();
    v_.next_bypass_ready = bypass_ready_.next();
  }

  // hold checks that an offered beat does not change until it is taken.
  void hold() {
    Beat beat = {};
    memcpy(beat.data, v_.m_axis_tdata.data(), sizeof beat.data);
    beat.keep = v_.m_axis_tkeep;
    beat.ends = v_.m_axis_tlast | v_.m_axis_tuser_abort << 1;
    if (waits_ && (!v_.m_axis_tvalid || memcmp(&beat, &waiting_, sizeof beat) != 0)) {
      fputs("m_axis changed a beat that nobody had taken\n", stderr);
      exit(4);
    }
    waiting_ = beat;
    waits_ = !v_.next_ready;
  }

  void report(uint64_t now) {
    if ((report_ & report_log) && v_.log_departed) {
      io_.put<uint8_t>('x');
      io_.put<uint16_t>(v_.log_departed_slot);
    }
    if ((report_ & report_log) && v_.log_decided && v_.log_class < 4) {
      io_.put<uint8_t>('l');
      io_.put<uint8_t>(v_.log_class);
      io_.put<uint16_t>(v_.log_slot);
      io_.put<uint16_t>(v_.log_worker);
      io_.put<uint32_t>(v_.log_sequence);
      io_.put<uint64_t>(v_.log_generation);
    }
    if ((report_ & report_decisions) && v_.test_decided) {
      io_.put<uint8_t>('d');
      io_.put<uint64_t>(now);
      io_.put<uint8_t>(v_.test_offered ? v_.test_class : 0xff);
    }
  }

  // leave takes a beat that is sent to the parameter server.
  void leave(uint64_t now) {
    append(leaving_, v_.m_axis_tdata.data(), v_.m_axis_tkeep, (report_ & report_lanes) || leaving_.empty());
    if (!v_.m_axis_tlast) return;
    if (!v_.m_axis_tuser_abort) {
      io_.put<uint8_t>('f');
      io_.put<uint64_t>(ends_.front());
      io_.put<uint64_t>(now);
      io_.put<uint64_t>(v_.m_axis_tuser_appended);
      io_.put<uint8_t>(v_.m_axis_tuser_saturated);
      io_.put<uint16_t>(v_.m_axis_tuser_size);
      io_.put<uint16_t>(leaving_.size());
      io_.write(leaving_.data(), leaving_.size());
      ends_.pop_front();
    } else {
      io_.put<uint8_t>('c');
    }
    leaving_.clear();
  }
  // pass takes a beat that bypasses the queue.
  void pass(uint64_t now) {
    append(passing_, v_.m_axis_bypass_tdata.data(), v_.m_axis_bypass_tkeep, true);
    if (!v_.m_axis_bypass_tlast) return;
    io_.put<uint8_t>('y');
    io_.put<uint64_t>(now);
    io_.put<uint16_t>(passing_.size());
    io_.write(passing_.data(), passing_.size());
    passing_.clear();
  }
  // send takes a beat that the generator sends to the wire.
  void send(uint64_t now) {
    append(sending_, v_.m_axis_gen_tdata.data(), v_.m_axis_gen_tkeep, true);
    if (!v_.m_axis_gen_tlast) return;
    io_.put<uint8_t>('w');
    io_.put<uint64_t>(now);
    io_.put<uint16_t>(sending_.size());
    io_.write(sending_.data(), sending_.size());
    sending_.clear();
  }
  static void append(std::vector<uint8_t> &to, const void *beat, uint64_t keep, bool wanted) {
    const auto *p = static_cast<const uint8_t *>(beat);
    if (wanted) to.insert(to.end(), p, p + __builtin_popcountll(keep));
  }

  // ---------------------------------------------------------------------------------------------------------------- vectors

  // answer_vector presents one frame while the output's clock is stopped, and reports its class.
  void answer_vector() {
    take_frame();
    uint8_t became = 0xff;
    if (!frames_.empty()) prime(false, true);
    while (v_.next_ce) {
      offer(~0ull);
      if (v_.test_decided) {
        v_.next_ce = 0;
        if (v_.test_offered) became = v_.test_class;
      }
      take(v_.test_cycles);
      clock();
    }
    io_.put<uint8_t>('v');
    io_.put(became);
  }
  // answer_step lets cycles of the output's clock pass. Everything else runs for two clocks per cycle.
  void answer_step() {
    const uint64_t cycles = io_.get<uint64_t>();
    const bool until_idle = io_.get<uint8_t>() != 0;
    const auto enough = [&](uint64_t done) { return done == cycles || (until_idle && v_.test_idle); };
    uint64_t done = 0, ended = v_.test_cycles;
    if (!enough(0)) {
      for (prime(true, true); v_.next_ce; ended = v_.test_cycles) {
        v_.next_run = 0;
        cycle();
        v_.next_run = 1;
        v_.next_ce = !enough(++done);
        cycle();
      }
    }
    if (until_idle) {  // frames that have left the queue are still in the output pipeline
      prime(false, true);
      for (int i = 0; i < 200; i++) {
        v_.next_ce = i < 199;
        cycle();
      }
    }
    io_.put<uint8_t>('s');
    io_.put<uint64_t>(ended);
  }
  // answer_idle runs clocks in which no time passes, for measuring the simulator itself.
  void answer_idle() {
    for (uint64_t n = io_.get<uint64_t>(); n > 0; n--) clock();
    io_.put<uint8_t>('z');
  }

  Pipes &io_;
  Volaf_sim v_;
  uint64_t clocks_ = 0;
  uint32_t report_ = 0;
  int writes_in_ = -1;  // clocks until the scheduled write is on the bus; negative for none
  int way_ = 0;         // clocks from the bus to a write's effect
  bool run_ = false;  // the output's clock runs in the next clock
  Ready ready_, bypass_ready_;
  std::deque<Frame> frames_;
  size_t sent_ = 0;              // bytes of the first frame that were taken
  std::deque<uint64_t> ends_;    // end times of frames whose last beat has not left yet
  std::vector<uint8_t> leaving_, passing_, sending_;
  Beat waiting_;        // offered, but not taken
  bool waits_ = false;
  std::unordered_map<uint32_t, Identity> known_;
};

}  // namespace

int main() {
  Pipes pipes;
  Card card(pipes);
  card.serve();
}
