//! Tests that access checks work while all other connections are busy.

use milepost_core::port::TokenStore;
use milepost_testkit::database::Database;

#[tokio::test]
async fn tokens_are_found_while_questions_take_all_their_connections() {
    let (_database, store) = Database::with_store().await;
    let pool = store.pool();
    let mut questions = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        questions.push(pool.acquire().await.unwrap());
    }
    assert!(pool.try_acquire().is_none(), "all connections are in use");
    assert!(!store.has_tokens().await.unwrap());
    assert!(store.token("none").await.unwrap().is_none());
}
