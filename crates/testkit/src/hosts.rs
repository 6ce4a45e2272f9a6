//! Hosts of URLs that must not be reached.

/// All notations of the local machine, and other hosts that are not public.
pub const NOT_PUBLIC: &str = "
    127.0.0.1 127.0.0.1. 127.1 127.0.1 127.255.255.254 2130706433 0x7f000001 0x7f.0.0.1 017700000001 0177.0.0.1 0177.0x0.0.1
    %31%32%37.0.0.1 １２７.0.0.1 127。0。0。1 0 0.0.0.0 localhost LocalHost
    [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b:1::127.0.0.1]
    [2002:7f00:1::1] [fe80::1] [fd00:ec2::254] [::ffff:169.254.169.254]
    169.254.169.254 0xa9fea9fe 100.100.100.200 168.63.129.16";
