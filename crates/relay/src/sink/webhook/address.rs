//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// IPv4 that is not the public's: IANA's special purposes, multicast, what is reserved; and the one address outside of them under which a
/// cloud (Azure) answers its machines.
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
/// The part of IPv6 that is given out to the public.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0], 3);
/// What is not the public's within it: protocols (Teredo among them), documentation.
const PRIVATE_V6: [Ipv6Net; 3] = [v6([0x2001, 0], 23), v6([0x2001, 0xdb8], 32), v6([0x3fff, 0], 20)];
/// Addresses that lead to the IPv4 address in their last bits (NAT64), and in their second and third group (6to4).
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0], 16);

const fn v4(address: [u8; 4], bits: u8) -> Ipv4Net {
    let [a, b, c, d] = address;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(groups: [u16; 2], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(groups[0], groups[1], 0, 0, 0, 0, 0, 0), bits)
}

/// Whether an address, and one that it leads to, belongs to the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if NAT64.contains(&address) => is_public_v4(last_bits(address)),
        IpAddr::V6(address) if SIX_TO_FOUR.contains(&address) => is_public_v4(second_and_third_group(address)),
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

    #[test]
    fn only_addresses_of_the_public_internet_are_public() {
        for public in [
            "1.1.1.1", "9.255.255.255", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "198.17.255.255",
            "223.255.255.255", "168.63.129.17", "2606:4700::1111", "2a00::", "2001:4860::8888", "::ffff:1.1.1.1",
            "64:ff9b::101:101", "2002:101:101::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            // This host, this network.
            "0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "::", "::1",
            // Private networks, and those of carriers.
            "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255",
            "fc00::1", "fdff::1", "fec0::1",
            // Links; the metadata of clouds.
            "169.254.1.1", "fe80::1", "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16",
            // Protocols, benchmarks, documentation.
            "192.0.0.8", "192.88.99.1", "198.18.0.1", "198.19.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1",
            "2001::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1",
            // All, many, nobody.
            "255.255.255.255", "240.0.0.1", "224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1",
            // IPv4 in the clothes of IPv6: mapped, compatible, NAT64 of all and of one network, 6to4.
            "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1", "::1.1.1.1",
            "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::101:101", "2002:7f00:1::1", "2002:a00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
