// Two-level fan-in in ns-3, the peer of `olafctl simulate --preset ns3-fifo`.
//
// Clusters 0..4 hang on SW1, 5..9 on SW2; both reach SW3, which reaches the parameter server. Every link is
// point-to-point with a drop-tail queue counted in packets and nothing above it. Arrivals come from splitmix64 or from a
// CSV (time_ns,worker), so that they are the same in any simulator. One CSV line per received update goes to --rx.
//
//   g++ -O2 -std=c++17 multihop.cc -o multihop -lns3-point-to-point -lns3-internet -lns3-network -lns3-core
//   ./multihop --seed=1 --interval=100000000 --rx=out.csv
//   ./multihop --bits=8240 --rates=1000000,999983      # prints the transmission times that ns-3 computes
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

const int64_t kEnd = 60000000000LL;
const uint32_t kPayload = 1000;
const uint16_t kPort = 20300;

uint64_t
SplitMix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

struct Stamp
{
    uint32_t worker;
    uint32_t seq;
    int64_t gen;
};

struct Totals
{
    uint64_t sent = 0;
    uint64_t received = 0;
};

Totals g_totals;
FILE* g_rx = nullptr;

class Worker
{
  public:
    Worker(Ptr<Node> node, Address server, uint32_t index, uint64_t base, int64_t interval, int64_t jitter)
        : m_index(index),
          m_base(base),
          m_interval(interval),
          m_jitter(jitter),
          m_phase(interval > 0 ? int64_t(base % uint64_t(interval)) : 0)
    {
        m_socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
        m_socket->Connect(server);
    }

    // Chain schedules the next periodic update; it does nothing from the end of the run on.
    void Chain()
    {
        int64_t at = m_phase + int64_t(m_next) * m_interval;
        if (m_jitter > 0)
        {
            at += int64_t(SplitMix(m_base + m_next) % uint64_t(m_jitter));
        }
        if (at < kEnd)
        {
            Simulator::Schedule(NanoSeconds(at) - Simulator::Now(), &Worker::SendAndChain, this);
        }
    }

    void SendAndChain()
    {
        Send();
        Chain();
    }

    void Send()
    {
        uint8_t payload[kPayload] = {0};
        Stamp stamp{m_index, m_next++, Simulator::Now().GetNanoSeconds()};
        std::memcpy(payload, &stamp, sizeof stamp);
        m_socket->Send(Create<Packet>(payload, kPayload));
        g_totals.sent++;
    }

  private:
    Ptr<Socket> m_socket;
    uint32_t m_index;
    uint64_t m_base;
    int64_t m_interval;
    int64_t m_jitter;
    int64_t m_phase;
    uint32_t m_next = 0;
};

void
Received(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        Stamp stamp;
        packet->CopyData(reinterpret_cast<uint8_t*>(&stamp), sizeof stamp);
        g_totals.received++;
        if (g_rx)
        {
            std::fprintf(g_rx,
                         "%lld,%u,%u,%lld\n",
                         (long long)Simulator::Now().GetNanoSeconds(),
                         stamp.worker,
                         stamp.seq,
                         (long long)stamp.gen);
        }
    }
}

// Connect joins two nodes and gives them addresses; a default route of `from` leads over the new link.
void
Connect(Ptr<Node> from, Ptr<Node> to, uint64_t rate, Time delay, const std::string& queue, Ipv4AddressHelper& subnets)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    link.DisableFlowControl();
    NetDeviceContainer devices = link.Install(from, to);
    Ipv4InterfaceContainer addresses = subnets.Assign(devices);
    subnets.NewNetwork();
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(from->GetObject<Ipv4>())
        ->SetDefaultRoute(addresses.GetAddress(1), from->GetObject<Ipv4>()->GetInterfaceForDevice(devices.Get(0)));
}

void
PrintTransmissionTimes(uint32_t bits, const std::string& rates)
{
    std::stringstream list(rates);
    for (std::string item; std::getline(list, item, ',');)
    {
        DataRate rate(std::stoull(item));
        std::printf("%u,%s,%lld\n", bits, item.c_str(), (long long)rate.CalculateBitsTxTime(bits).GetNanoSeconds());
    }
}

} // namespace

int
main(int argc, char** argv)
{
    uint64_t seed = 1;
    int64_t interval = 100000000;
    int64_t interval2 = 0;
    int64_t jitter = 0;
    uint64_t x1 = 10000000;
    uint64_t x2 = 10000000;
    uint64_t x3 = 1000000;
    uint64_t access = 100000000;
    uint32_t perCluster = 10;
    uint32_t bits = 0;
    std::string rates;
    std::string arrivals;
    std::string rx;
    CommandLine cmd(__FILE__);
    cmd.AddValue("seed", "seed of the arrivals", seed);
    cmd.AddValue("interval", "ns between the updates of a worker", interval);
    cmd.AddValue("interval2", "the same for clusters 5..9; 0 = interval", interval2);
    cmd.AddValue("jitter", "ns, each send is late by less than this", jitter);
    cmd.AddValue("x1", "bit/s out of SW1", x1);
    cmd.AddValue("x2", "bit/s out of SW2", x2);
    cmd.AddValue("x3", "bit/s out of SW3", x3);
    cmd.AddValue("access", "bit/s of each worker's link", access);
    cmd.AddValue("workers", "workers per cluster", perCluster);
    cmd.AddValue("arrivals", "CSV of time_ns,worker instead of the periodic arrivals", arrivals);
    cmd.AddValue("rx", "CSV to write", rx);
    cmd.AddValue("bits", "print transmission times of so many bits and stop", bits);
    cmd.AddValue("rates", "bit/s, comma-separated, for --bits", rates);
    cmd.Parse(argc, argv);
    if (bits > 0)
    {
        PrintTransmissionTimes(bits, rates);
        return 0;
    }
    if (interval2 == 0)
    {
        interval2 = interval;
    }
    const uint32_t count = 10 * perCluster;
    const Time hop = MicroSeconds(100);

    NodeContainer workers;
    workers.Create(count);
    NodeContainer switches;
    switches.Create(3);
    NodeContainer server;
    server.Create(1);
    InternetStackHelper stack;
    stack.Install(workers);
    stack.Install(switches);
    stack.Install(server);

    Ipv4AddressHelper subnets("10.0.0.0", "255.255.255.252");
    Connect(switches.Get(0), switches.Get(2), x1, hop, "5p", subnets);
    Connect(switches.Get(1), switches.Get(2), x2, hop, "5p", subnets);
    Connect(switches.Get(2), server.Get(0), x3, hop, "8p", subnets);
    for (uint32_t w = 0; w < count; w++)
    {
        Connect(workers.Get(w), switches.Get(w < count / 2 ? 0 : 1), access, hop, "1000p", subnets);
    }

    Ptr<Socket> sink = Socket::CreateSocket(server.Get(0), UdpSocketFactory::GetTypeId());
    sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    sink->SetRecvCallback(MakeCallback(&Received));
    Ipv4Address address = server.Get(0)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();

    std::vector<std::unique_ptr<Worker>> senders;
    for (uint32_t w = 0; w < count; w++)
    {
        senders.push_back(std::make_unique<Worker>(workers.Get(w),
                                                   InetSocketAddress(address, kPort),
                                                   w,
                                                   SplitMix(seed * 1000003 + w),
                                                   w < count / 2 ? interval : interval2,
                                                   jitter));
    }
    if (arrivals.empty())
    {
        for (auto& sender : senders)
        {
            sender->Chain();
        }
    }
    else
    {
        std::ifstream file(arrivals);
        std::string line;
        while (std::getline(file, line))
        {
            long long at = 0;
            unsigned worker = 0;
            if (std::sscanf(line.c_str(), "%lld,%u", &at, &worker) == 2 && at < kEnd && worker < count)
            {
                Simulator::Schedule(NanoSeconds(at), &Worker::Send, senders[worker].get());
            }
        }
    }

    if (!rx.empty())
    {
        g_rx = std::fopen(rx.c_str(), "wb");
        NS_ABORT_MSG_IF(!g_rx, "cannot write " << rx);
        std::fputs("rx_ns,worker,seq,gen_ns\n", g_rx);
    }
    Simulator::Stop(NanoSeconds(kEnd));
    Simulator::Run();
    if (g_rx)
    {
        std::fclose(g_rx);
    }
    std::printf("sent %llu received %llu\n",
                (unsigned long long)g_totals.sent,
                (unsigned long long)g_totals.received);
    Simulator::Destroy();
    return 0;
}
