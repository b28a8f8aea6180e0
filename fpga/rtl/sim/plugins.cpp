// Drives plugins_sim with text commands, one per line: "w CARD ADDRESS VALUE" writes a register, "r CARD ADDRESS"
// prints one, and "c N" lets N clocks pass. Frames at the output are printed as "f BYTES". Numbers and bytes are
// hexadecimal.
#include <cstdint>
#include <cstdio>
#include <string>

#include "Vplugins_sim.h"
#include "verilated.h"

static Vplugins_sim v;
static std::string frame;

static void tick() {
  v.clk = 1;
  v.eval();
  v.clk = 0;
  v.eval();
  if (!v.out_tvalid) return;
  const auto *p = reinterpret_cast<const uint8_t *>(v.out_tdata.data());
  char hex[3];
  for (int i = 0; i < 64 && (v.out_tkeep >> i & 1); i++) {
    snprintf(hex, sizeof hex, "%02x", p[i]);
    frame += hex;
  }
  if (v.out_tlast) {
    printf("f %s\n", frame.c_str());
    frame.clear();
  }
}

int main() {
  v.rstn = 0;
  for (int i = 0; i < 20; i++) tick();
  v.rstn = 1;
  while (v.ready != 3) tick();
  for (int i = 0; i < 20; i++) tick();
  char what;
  unsigned card, value;
  while (scanf(" %c %x", &what, &card) == 2) {
    if (what == 'c') {
      for (unsigned i = 0; i < card; i++) tick();
      continue;
    }
    if (scanf("%x", &v.address) != 1) return 1;
    if (what == 'w' && scanf("%x", &value) != 1) return 1;
    v.data = value;
    (what == 'w' ? v.write : v.read) = 1 << card;
    v.eval();
    bool taken = v.accepted >> card & 1;
    for (tick(); !taken; tick()) taken = v.accepted >> card & 1;
    v.write = v.read = 0;
    while (!((what == 'w' ? v.bvalid : v.rvalid) >> card & 1)) tick();
    if (what == 'r') printf("r %x\n", static_cast<unsigned>(v.rdata >> 32 * card));
    tick();
  }
}
