//! Secrets and signatures of webhooks.

use standardwebhooks::Webhook;

use crate::check;

/// Signs a body with the secret of the first line, for the message id of the second line. The published library computes the same
/// signature.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    const TIMESTAMP: i64 = 1_649_367_553;
    let Some([secret, id, body]) = check::lines::<3>(input) else { return };
    let library = Webhook::new(secret);
    match milepost_relay::fuzzing::sign(&[secret], id, TIMESTAMP, body.as_bytes()) {
        Ok(signature) => {
            let library = library.unwrap_or_else(|error| panic!("the library refuses {secret:?}: {error}"));
            let expected = library.sign(id, TIMESTAMP, body.as_bytes()).expect("a body can be signed");
            assert_eq!(signature, expected);
            let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
            let both = milepost_relay::fuzzing::sign(&[secret, other], id, TIMESTAMP, body.as_bytes());
            assert!(both.is_ok_and(|both| both.starts_with(&signature) && both.split(' ').count() == 2));
        }
        Err(invalid) => {
            let why = invalid.to_string();
            check::message(&why);
            assert!(secret.len() < 20 || !why.contains(secret), "a message contains a secret");
        }
    }
}
