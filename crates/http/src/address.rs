//! Classification of addresses as public or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// IPv4 networks that are not public: IANA special-purpose, multicast and reserved ones; and the one public address under which a cloud
/// (Azure) serves its machines.
const PRIVATE_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    v4([168, 63, 129, 16], 32),
];
/// The part of IPv6 that is assigned to the public.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0], 3);
/// The parts of it that are not public: protocols (including Teredo) and documentation.
const PRIVATE_V6: [Ipv6Net; 3] = [v6([0x2001, 0], 23), v6([0x2001, 0xdb8], 32), v6([0x3fff, 0], 20)];
/// Networks whose addresses are translated to the IPv4 address in their last bits (NAT64), or in their second and third group (6to4).
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0], 16);

/// Returns whether the host of a URL or of a request is this machine: `localhost`, or a loopback address, in brackets for IPv6.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

const fn v4(address: [u8; 4], bits: u8) -> Ipv4Net {
    let [a, b, c, d] = address;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(groups: [u16; 2], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(groups[0], groups[1], 0, 0, 0, 0, 0, 0), bits)
}

/// Returns whether an address, or the IPv4 address that it is translated to, is public.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if NAT64.contains(&address) => is_public_v4(last_bits(address)),
        IpAddr::V6(address) if SIX_TO_FOUR.contains(&address) => {
            is_public_v4(second_and_third_group(address))
        }
        IpAddr::V6(address) => {
            PUBLIC_V6.contains(&address) && !PRIVATE_V6.iter().any(|private| private.contains(&address))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !PRIVATE_V4.iter().any(|private| private.contains(&address))
}

fn last_bits(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

fn second_and_third_group(address: Ipv6Addr) -> Ipv4Addr {
    let [_, _, a, b, c, d, ..] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line each: this host, private, carrier-grade NAT, link-local, clouds, protocols, benchmarks, documentation, multicast, reserved
    /// and broadcast.
    const PRIVATE: &str = "
        0.0.0.0 0.1.2.3 127.0.0.1 127.255.255.254 :: ::1
        10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fdff::1 fec0::1
        100.64.0.1 100.127.255.255
        169.254.1.1 fe80::1
        169.254.169.254 fd00:ec2::254 100.100.100.200 192.0.0.192 168.63.129.16
        192.0.0.8 192.88.99.1 2001::1 2001:10::1 2001:20::1 100::1 5f00::1
        198.18.0.1 198.19.255.255
        192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1
        224.0.0.1 239.255.255.255 ff02::1 ff0e::1
        240.0.0.1 255.255.255.255";
    /// IPv4 within IPv6: mapped, compatible, NAT64 (well-known and local prefix), 6to4.
    const PRIVATE_WITHIN: &str = "
        ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
        ::127.0.0.1 ::10.0.0.1 ::1.1.1.1
        64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::101:101
        2002:7f00:1::1 2002:a00:1:: 2002:a9fe:a9fe::1";
    /// The neighbours of these networks, and others.
    const PUBLIC: &str = "
        1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.17 169.253.255.255
        169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 198.17.255.255 198.20.0.0 223.255.255.255
        2001:200:: 2001:4860::8888 2606:4700::1111 2a00:: 3ffe::
        ::ffff:1.1.1.1 64:ff9b::101:101 2002:101:101::1";

    #[test]
    fn only_addresses_of_the_public_internet_are_public() {
        let all =
            |text: &'static str| text.split_whitespace().map(|address| (address, address.parse().unwrap()));
        for (text, address) in all(PRIVATE).chain(all(PRIVATE_WITHIN)) {
            assert!(!is_public(address), "{text}");
        }
        for (text, address) in all(PUBLIC) {
            assert!(is_public(address), "{text}");
        }
    }
}
