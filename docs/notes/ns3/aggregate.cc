// Workers that wait for a switch's sums, in ns-3: the peer of `experiments/netsim/closedloop`.
//
// Workers hang on one switch by point-to-point links without a limit of their queues; above the devices there is nothing but
// the protocol of this file. The switch has iSwitch's table (a sum a segment) or SwitchML's (two sets a slot). When a worker
// starts a vector, a CSV (worker,vector,compute_ps) says how long it computes; which frames a link loses follows from
// splitmix64 by their number on it. One CSV line per sum that reaches a worker goes to --rx.
//
//   g++ -O2 -std=c++17 aggregate.cc -o aggregate -lns3-point-to-point -lns3-network -lns3-core
//   ./aggregate --system=switchml --workers=4 --values=1000 --lanes=64 --slots=4 --rounds=5 --compute=compute.csv --rx=out.csv
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

const uint16_t kProtocol = 0x0800; // PPP knows only this and IPv6
const uint32_t kPppBytes = 2;
const uint32_t kLeastFrame = 60;

uint64_t
SplitMix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

struct Options
{
    std::string system = "iswitch";
    uint32_t workers = 4;
    uint32_t values = 1000; // of a vector
    uint32_t lanes = 64;    // of a packet
    uint32_t header = 50;
    uint32_t overhead = 24;
    uint32_t slots = 0; // of the pool, or of iSwitch's table; 0 is as long as a vector
    uint32_t rounds = 5;
    uint64_t rate = 10000000000ULL;
    int64_t delay = 500000; // ps
    int64_t timeout = 1000000000; // ps
    int64_t skew = 0;             // ps that a worker waits for longer than the one before
    uint64_t loss = 0;            // of 2^63
    uint64_t seed = 1;
    std::string compute;
    std::string rx;
};

Options g_options;
FILE* g_rx = nullptr;

uint32_t
Packets()
{
    return (g_options.values + g_options.lanes - 1) / g_options.lanes;
}

uint32_t
LanesOf(uint32_t seg)
{
    return std::min(g_options.lanes, g_options.values - seg * g_options.lanes);
}

// Frame is what of a packet the protocols read; one value stands for all its lanes.
struct Frame
{
    uint32_t worker;
    uint32_t seg;
    uint32_t slot;
    uint32_t set;
    uint32_t value;
};

uint32_t
BytesOnWire(uint32_t lanes)
{
    return std::max(kLeastFrame, g_options.header + 4 * lanes) + g_options.overhead;
}

Ptr<Packet>
Pack(const Frame& f)
{
    uint8_t head[kLeastFrame] = {0};
    std::memcpy(head, &f, sizeof f);
    Ptr<Packet> p = Create<Packet>(head, kLeastFrame - kPppBytes);
    p->AddPaddingAtEnd(BytesOnWire(LanesOf(f.seg)) - kLeastFrame);
    return p;
}

Frame
Unpack(Ptr<const Packet> p)
{
    Frame f;
    p->CopyData(reinterpret_cast<uint8_t*>(&f), sizeof f);
    return f;
}

void
Send(Ptr<NetDevice> device, const Frame& f)
{
    device->Send(Pack(f), device->GetBroadcast(), kProtocol);
}

// Drawn loses frames of one direction of a link by their number on it.
class Drawn : public ErrorModel
{
  public:
    explicit Drawn(uint64_t wire)
        : m_salt(SplitMix(SplitMix(g_options.seed) ^ (wire + 1) << 32))
    {
    }

  private:
    bool DoCorrupt(Ptr<Packet>) override
    {
        return SplitMix(m_salt + ++m_frames) >> 1 < g_options.loss;
    }

    void DoReset() override
    {
    }

    uint64_t m_salt;
    uint64_t m_frames = 0;
};

// Table is what a switch keeps; it says to whom which sums go.
class Table
{
  public:
    virtual ~Table() = default;
    // Take has a worker's frame. It sends to one port, or to all.
    virtual void Take(const Frame& f, std::vector<Ptr<NetDevice>>& ports) = 0;
};

void
SendAll(const Frame& f, std::vector<Ptr<NetDevice>>& ports)
{
    for (auto& port : ports)
    {
        Send(port, f);
    }
}

// Segments is iSwitch's: a sum is complete with one frame of every worker, whoever sent it, and then empty again.
class Segments : public Table
{
  public:
    void Take(const Frame& f, std::vector<Ptr<NetDevice>>& ports) override
    {
        Sum& sum = m_sums[f.seg % (g_options.slots ? g_options.slots : Packets())];
        sum.value += f.value;
        if (++sum.count < g_options.workers)
        {
            return;
        }
        Frame result = f;
        result.value = sum.value;
        sum = Sum();
        SendAll(result, ports);
    }

  private:
    struct Sum
    {
        uint32_t count = 0;
        uint32_t value = 0;
    };

    std::map<uint32_t, Sum> m_sums;
};

// Pool is SwitchML's: two sets a slot, in which a worker's frame of one frees its place in the other; the last sum of a set
// answers who sends again.
class Pool : public Table
{
  public:
    void Take(const Frame& f, std::vector<Ptr<NetDevice>>& ports) override
    {
        Set& set = m_sets[{f.slot, f.set}];
        Set& other = m_sets[{f.slot, 1 - f.set}];
        const uint32_t bit = 1u << f.worker;
        const uint32_t before = set.bitmap;
        set.bitmap |= bit;
        other.bitmap &= ~bit;
        Frame result = f;
        if (before & bit)
        {
            if (set.missing == 0)
            {
                result.value = set.value;
                Send(ports[f.worker], result);
            }
            return;
        }
        set.value = before == 0 ? f.value : set.value + f.value;
        set.missing = (set.missing == 0 ? g_options.workers : set.missing) - 1;
        if (set.missing == 0)
        {
            result.value = set.value;
            SendAll(result, ports);
        }
    }

  private:
    struct Set
    {
        uint32_t bitmap = 0;
        uint32_t missing = 0;
        uint32_t value = 0;
    };

    std::map<std::pair<uint32_t, uint32_t>, Set> m_sets;
};

class Switch
{
  public:
    Switch()
    {
        if (g_options.system == "switchml")
        {
            m_table = std::make_unique<Pool>();
        }
        else
        {
            m_table = std::make_unique<Segments>();
        }
    }

    void Add(Ptr<NetDevice> port)
    {
        m_ports.push_back(port);
        port->SetReceiveCallback(MakeCallback(&Switch::Receive, this));
    }

    bool Receive(Ptr<NetDevice>, Ptr<const Packet> p, uint16_t, const Address&)
    {
        m_table->Take(Unpack(p), m_ports);
        return true;
    }

  private:
    std::unique_ptr<Table> m_table;
    std::vector<Ptr<NetDevice>> m_ports;
};

// Worker computes a vector, sends it, and begins the next one when it has every sum.
class Worker
{
  public:
    Worker(uint32_t index, Ptr<NetDevice> device, std::vector<int64_t> compute)
        : m_index(index),
          m_device(device),
          m_compute(std::move(compute))
    {
        device->SetReceiveCallback(MakeCallback(&Worker::Receive, this));
    }

    virtual ~Worker() = default;

    void Compute()
    {
        m_busy = true;
        Simulator::Schedule(PicoSeconds(m_compute.at(m_round)), &Worker::Computed, this);
    }

  protected:
    virtual void Begin() = 0;
    // Ours says whether a sum is one that the worker waits for, and notes that it is there.
    virtual bool Ours(const Frame& f) = 0;
    virtual void Next(const Frame& f) = 0;

    // Transmit sends a segment of this vector and says when it has left.
    int64_t Transmit(uint32_t seg, uint32_t slot, uint32_t set)
    {
        Frame f{m_index, seg, slot, set, (m_index + 1) * (m_round + 3) + seg};
        Send(m_device, f);
        const int64_t now = Simulator::Now().GetPicoSeconds();
        m_free = std::max(m_free, now) + DataRate(g_options.rate).CalculateBytesTxTime(BytesOnWire(LanesOf(seg))).GetPicoSeconds();
        return m_free;
    }

    uint32_t m_index;
    uint32_t m_round = 0;
    bool m_busy = false;
    bool m_over = false;
    std::vector<bool> m_have;
    uint32_t m_missing = 0;

  private:
    void Computed()
    {
        m_busy = false;
        m_have.assign(Packets(), false);
        m_missing = Packets();
        Begin();
    }

    bool Receive(Ptr<NetDevice>, Ptr<const Packet> p, uint16_t, const Address&)
    {
        const Frame f = Unpack(p);
        if (g_rx)
        {
            std::fprintf(g_rx,
                         "%lld,%u,%u,%u,%u,%u\n",
                         (long long)Simulator::Now().GetPicoSeconds(),
                         m_index,
                         f.seg,
                         f.slot,
                         f.set,
                         f.value);
        }
        if (m_busy || m_over || m_have[f.seg] || !Ours(f))
        {
            return true;
        }
        m_have[f.seg] = true;
        if (--m_missing > 0)
        {
            Next(f);
            return true;
        }
        m_busy = true;
        Simulator::ScheduleNow(&Worker::Applied, this);
        return true;
    }

    void Applied()
    {
        Finish();
        m_over = ++m_round == g_options.rounds;
        if (!m_over)
        {
            Compute();
        }
    }

    virtual void Finish()
    {
    }

    Ptr<NetDevice> m_device;
    std::vector<int64_t> m_compute;
    int64_t m_free = 0;
};

// SegmentWorker may be a table's length ahead of the first segment that it misses.
class SegmentWorker : public Worker
{
  public:
    using Worker::Worker;

  private:
    void Begin() override
    {
        m_sent = m_low = 0;
        Fill();
    }

    bool Ours(const Frame& f) override
    {
        return f.seg < m_sent;
    }

    void Next(const Frame&) override
    {
        Fill();
    }

    void Fill()
    {
        while (m_low < Packets() && m_have[m_low])
        {
            m_low++;
        }
        const uint32_t ahead = g_options.slots ? g_options.slots : Packets();
        for (; m_sent < Packets() && m_sent < m_low + ahead; m_sent++)
        {
            Transmit(m_sent, 0, 0);
        }
    }

    uint32_t m_sent = 0;
    uint32_t m_low = 0;
};

// PoolWorker has a packet in every slot of the pool; a sum makes room for the one that is a pool's length later.
class PoolWorker : public Worker
{
  public:
    using Worker::Worker;

  private:
    void Begin() override
    {
        m_due.resize(g_options.slots);
        m_packet.assign(g_options.slots, UINT32_MAX);
        for (uint32_t i = 0; i < std::min(Packets(), g_options.slots); i++)
        {
            Fresh(i);
        }
    }

    uint32_t Place(uint32_t seg) const
    {
        return (m_shift + seg) % (2 * g_options.slots);
    }

    void Fresh(uint32_t seg)
    {
        const uint32_t slot = Place(seg) % g_options.slots;
        const int64_t left = Transmit(seg, slot, Place(seg) / g_options.slots);
        const int64_t first = g_options.timeout + g_options.skew * m_index;
        const int64_t wait = first << std::min<uint32_t>(m_timeouts / 100, 20);
        m_packet[slot] = seg;
        m_due[slot].Cancel();
        m_due[slot] = Simulator::Schedule(PicoSeconds(left + wait) - Simulator::Now(), &PoolWorker::Late, this, slot);
    }

    void Late(uint32_t slot)
    {
        m_timeouts++;
        Fresh(m_packet[slot]);
    }

    bool Ours(const Frame& f) override
    {
        const uint32_t slot = Place(f.seg) % g_options.slots;
        if (f.slot != slot || f.set != Place(f.seg) / g_options.slots || m_packet[slot] != f.seg)
        {
            return false;
        }
        m_due[slot].Cancel();
        m_packet[slot] = UINT32_MAX;
        return true;
    }

    void Next(const Frame& f) override
    {
        if (f.seg + g_options.slots < Packets())
        {
            Fresh(f.seg + g_options.slots);
        }
    }

    void Finish() override
    {
        m_shift = (m_shift + Packets()) % (2 * g_options.slots);
    }

    uint32_t m_shift = 0;
    uint32_t m_timeouts = 0;
    std::vector<EventId> m_due;
    std::vector<uint32_t> m_packet;
};

std::vector<std::vector<int64_t>>
ReadCompute()
{
    std::vector<std::vector<int64_t>> all(g_options.workers);
    std::ifstream file(g_options.compute);
    NS_ABORT_MSG_IF(!file, "cannot read " << g_options.compute);
    std::string line;
    while (std::getline(file, line))
    {
        unsigned worker = 0;
        unsigned vector = 0;
        long long ps = 0;
        if (std::sscanf(line.c_str(), "%u,%u,%lld", &worker, &vector, &ps) == 3 && worker < g_options.workers)
        {
            all[worker].push_back(ps); // in the order of the vectors
        }
    }
    return all;
}

} // namespace

int
main(int argc, char** argv)
{
    Time::SetResolution(Time::PS);
    Options& o = g_options;
    CommandLine cmd(__FILE__);
    cmd.AddValue("system", "iswitch or switchml", o.system);
    cmd.AddValue("workers", "workers on the switch", o.workers);
    cmd.AddValue("values", "values of a vector", o.values);
    cmd.AddValue("lanes", "values of a packet", o.lanes);
    cmd.AddValue("header", "bytes in front of a packet's values", o.header);
    cmd.AddValue("overhead", "bytes on the line beside a frame", o.overhead);
    cmd.AddValue("slots", "length of the pool, or of iSwitch's table; 0 is as long as a vector", o.slots);
    cmd.AddValue("rounds", "vectors of a worker", o.rounds);
    cmd.AddValue("rate", "bit/s of every link", o.rate);
    cmd.AddValue("delay", "ps of every link", o.delay);
    cmd.AddValue("timeout", "ps after which a SwitchML worker sends again", o.timeout);
    cmd.AddValue("skew", "ps that it waits for longer than the worker before", o.skew);
    cmd.AddValue("loss", "share of lost frames, of 2^63", o.loss);
    cmd.AddValue("seed", "seed of the losses", o.seed);
    cmd.AddValue("compute", "CSV of worker,vector,compute_ps", o.compute);
    cmd.AddValue("rx", "CSV to write", o.rx);
    cmd.Parse(argc, argv);

    NodeContainer nodes;
    nodes.Create(o.workers + 1);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(o.rate)));
    link.SetChannelAttribute("Delay", TimeValue(PicoSeconds(o.delay)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000000p"));
    link.DisableFlowControl();
    const auto compute = ReadCompute();
    Switch aggregator;
    std::vector<std::unique_ptr<Worker>> workers;
    for (uint32_t w = 0; w < o.workers; w++)
    {
        NetDeviceContainer ends = link.Install(nodes.Get(w), nodes.Get(o.workers));
        if (o.loss > 0)
        {
            ends.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(Create<Drawn>(2 * w)));
            ends.Get(0)->SetAttribute("ReceiveErrorModel", PointerValue(Create<Drawn>(2 * w + 1)));
        }
        aggregator.Add(ends.Get(1));
        if (o.system == "switchml")
        {
            workers.push_back(std::make_unique<PoolWorker>(w, ends.Get(0), compute.at(w)));
        }
        else
        {
            workers.push_back(std::make_unique<SegmentWorker>(w, ends.Get(0), compute.at(w)));
        }
    }
    if (!o.rx.empty())
    {
        g_rx = std::fopen(o.rx.c_str(), "wb");
        NS_ABORT_MSG_IF(!g_rx, "cannot write " << o.rx);
        std::fputs("rx_ps,worker,seg,slot,set,value\n", g_rx);
    }
    for (auto& worker : workers)
    {
        worker->Compute();
    }
    Simulator::Run();
    if (g_rx)
    {
        std::fclose(g_rx);
    }
    Simulator::Destroy();
    return 0;
}
