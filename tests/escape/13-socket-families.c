/*
 * Asks for socket families that show packets, reach the host, or open rarely reviewed kernel
 * code.
 */
#include "attack.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct family {
    const char *what;
    int domain, type, protocol;
};

static const struct family denied[] = {
    { "packet-raw", AF_PACKET, SOCK_RAW, 0 },
    { "packet-datagram", AF_PACKET, SOCK_DGRAM, 0 },
    { "inet-raw-icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP },
    { "inet-raw", AF_INET, SOCK_RAW, IPPROTO_RAW },
    { "inet6-raw", AF_INET6, SOCK_RAW, IPPROTO_RAW },
    { "inet-sctp", AF_INET, SOCK_SEQPACKET, 132 /* SCTP */ },
    { "netlink-audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT },
    { "netlink-netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER },
    { "netlink-xfrm", AF_NETLINK, SOCK_RAW, NETLINK_XFRM },
    { "netlink-uevent", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT },
    { "netlink-generic", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC },
    { "netlink-crypto", AF_NETLINK, SOCK_RAW, NETLINK_CRYPTO },
    { "netlink-diag", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG },
    { "vsock", AF_VSOCK, SOCK_STREAM, 0 },
    { "alg", AF_ALG, SOCK_SEQPACKET, 0 },
    { "key", AF_KEY, SOCK_RAW, 2 /* PF_KEY_V2 */ },
    { "xdp", AF_XDP, SOCK_RAW, 0 },
    { "bluetooth", AF_BLUETOOTH, SOCK_RAW, 1 },
    { "can", AF_CAN, SOCK_RAW, 1 },
    { "tipc", AF_TIPC, SOCK_RDM, 0 },
    { "rds", AF_RDS, SOCK_SEQPACKET, 0 },
    { "ax25", AF_AX25, SOCK_DGRAM, 0 },
    { "appletalk", AF_APPLETALK, SOCK_DGRAM, 0 },
    { "x25", AF_X25, SOCK_SEQPACKET, 0 },
    { "llc", AF_LLC, SOCK_DGRAM, 0 },
    { "kcm", AF_KCM, SOCK_DGRAM, 0 },
    { "qipcrtr", AF_QIPCRTR, SOCK_DGRAM, 0 },
    { "smc", AF_SMC, SOCK_STREAM, 0 },
};

static long call_socket(const void *arg)
{
    const struct family *f = arg;
    return socket(f->domain, f->type | SOCK_CLOEXEC, f->protocol);
}

/* The domain is an int: a filter that compares 64 bits can be bypassed by a bit above. */
static long call_socket_high(const void *arg)
{
    const struct family *f = arg;
    return syscall(SYS_socket, (1UL << 32) | (unsigned)f->domain, f->type, f->protocol);
}

static void attack(char **args)
{
    const int *const reasons =
            REASONS(EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, ENOSYS);
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(denied); i++)
        attempt_in_child(denied[i].what, call_socket, &denied[i], NULL, reasons);
    attempt_in_child("packet-high-bit", call_socket_high, &denied[0], NULL, reasons);
    attempt_in_child("diag-high-bit", call_socket_high, &denied[12], NULL, reasons);
}

static bool talks(int family)
{
    struct sockaddr_storage addr = { .ss_family = (sa_family_t)family };
    struct sockaddr_in *in = (struct sockaddr_in *)&addr;
    socklen_t len = sizeof(addr);
    if (family == AF_INET)
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&addr)->sin6_addr = in6addr_loopback;
    int server = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return bind(server, (struct sockaddr *)&addr, size) == 0 && listen(server, 1) == 0 &&
           getsockname(server, (struct sockaddr *)&addr, &len) == 0 &&
           connect(client, (struct sockaddr *)&addr, size) == 0;
}

static void control(char **args)
{
    int pair[2];
    (void)args;
    works("loopback", talks(AF_INET));
    works("unix", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    works("udp", socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
    works("inet6",
            socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || errno == EAFNOSUPPORT);
    works("netlink-route", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) >= 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
