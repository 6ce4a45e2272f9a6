use serde_json::{Value, json};

use super::super::rule::Outcome;
use super::*;

fn with_scope<T>(look: impl FnOnce(&Scope<'_>) -> T) -> T {
    let input = Exact::from(
        json!({"count": 4, "rate": 0.5, "name": "a-b", "items": [1, 2, 3], "big": vec![7; 2000]}),
    );
    let (output, null) = (Exact::from(json!({"rows": [{"id": 7}, {"id": 8}]})), Exact::default());
    let tasks = [
        TaskValue { key: "extract", state: Outcome::Succeeded, output: &output },
        TaskValue { key: "a-b", state: Outcome::Failed, output: &null },
    ];
    let tick = Exact::from(json!({"date": "2026-11-22"}));
    look(&Scope::new(
        &Values { input: &input, tick: &tick, tasks: &tasks, item: None, event: None },
        STEPS_MAX,
    ))
}

fn value(text: &str) -> Result<Value, EvaluationError> {
    with_scope(|scope| Expression::compile(text).unwrap().value(scope)).map(|value| value.rounded())
}

fn invalid(text: &str) -> InvalidExpression {
    Expression::compile(text).unwrap_err()
}

#[test]
fn expressions_see_the_input_and_the_predecessors() {
    assert_eq!(value("input.count > 3 && tasks.extract.state == 'succeeded'"), Ok(json!(true)));
    assert_eq!(value("tasks['a-b'].state + '/' + input.name"), Ok(json!("failed/a-b")));
    assert_eq!(value("tasks.extract.output.rows.map(row, row.id + 1)"), Ok(json!([8, 9])));
    assert_eq!(value("tasks.extract.output.rows.filter(row, row.id > 7)[0]"), Ok(json!({"id": 8})));
    assert_eq!(value("input.rate < 1.0 && input.count > 3"), Ok(json!(true)));
    assert_eq!(value("has(input.count) && !has(input.nothing)"), Ok(json!(true)));
    assert_eq!(value("input.items.exists(i, i == 3) && 2 in input.items"), Ok(json!(true)));
    assert_eq!(value("size(input.items) == 3 ? {'a': input.count} : {}"), Ok(json!({"a": 4})));
    assert_eq!(value("type(input.count) == int && type(input.name) != type(1)"), Ok(json!(true)));
    assert_eq!(value("input.nothing == 1 || input.count == 4"), Ok(json!(true)));
    assert_eq!(value("tasks['a-b'].output == null"), Ok(json!(true)));
    assert_eq!(value("tick.date + '!'"), Ok(json!("2026-11-22!")));
    assert_eq!(value("tasks.all(key, tasks[key].state != 'canceled')"), Ok(json!(true)));
}

#[test]
fn what_is_no_expression_says_where() {
    let InvalidExpression::Syntax { line, column, .. } = invalid("\n  1 + * 2") else { panic!() };
    assert_eq!((line, column), (2, 7));
    assert_eq!(invalid(" "), InvalidExpression::Empty);
    assert_eq!(invalid(&"x".repeat(2001)), InvalidExpression::TooLong { bytes: 2001 });
    let unknown = |name: &str| InvalidExpression::UnknownFunction { name: name.to_owned() };
    assert_eq!(invalid("size(input) > now()"), unknown("now"));
    assert_eq!(invalid("input.name.matches('a')"), unknown("matches"));
    for text in
        ["input.a.startsWith('a') && input.a.contains('b')", "int(input.a) + size(input.b)", "type(1)"]
    {
        assert!(Expression::compile(text).is_ok(), "{text}");
    }
    let unknown = invalid("input.items.all(i, i > limit)");
    assert!(unknown.to_string().starts_with("there is no variable \"limit\""), "{unknown}");
}

#[test]
fn what_an_expression_reads_is_known_before_it_runs() {
    let reads = |text: &str| Expression::compile(text).unwrap().reads().clone();
    let keys = |text: &str| reads(text).tasks.into_iter().collect::<Vec<_>>();
    assert_eq!(keys("tasks.b.output + tasks['a-b'].output"), ["a-b", "b"]);
    assert_eq!(keys("has(tasks.a) && input.x.all(i, tasks.c.output == i)"), ["a", "c"]);
    assert!(reads("tasks.all(key, true)").all_tasks);
    assert!(reads("tasks[input.name].state == ''").all_tasks);
    assert!(reads("item.id == index").item);
    assert!(reads("input.mail.exists(i, i > 0)").input);
    let hidden = reads("[1].all(tasks, tasks > 0) && [1].all(input, input > 0) && tick.date != ''");
    assert!(hidden.only_tick(), "the variable of a loop hides it");
    for more in ["input", "tasks", "tasks.a", "item"] {
        assert!(!reads(&format!("[tick, {more}]")).only_tick(), "{more}");
    }
}

#[test]
fn a_condition_is_true_or_false_and_nothing_else() {
    let holds = |text: &str| with_scope(|scope| Expression::compile(text).unwrap().holds(scope));
    assert_eq!(holds("input.count == 4"), Ok(true));
    assert_eq!(holds("input.count == 5"), Ok(false));
    assert_eq!(
        holds("input.count").unwrap_err().to_string(),
        "it returns a number; it must return true or false"
    );
    let missing = holds("input.nothing == 1").unwrap_err().to_string();
    assert!(missing.contains("nothing"), "{missing}");
}

#[test]
fn a_list_is_a_list() {
    let list = |text: &str| with_scope(|scope| Expression::compile(text).unwrap().list(scope));
    assert_eq!(list("input.items"), Ok(vec![json!(1).into(), json!(2).into(), json!(3).into()]));
    assert_eq!(list("input.name").unwrap_err().to_string(), "it returns a string; it must return a list");
}

#[test]
fn an_expression_cannot_go_on_for_long() {
    for text in [
        "input.big.map(a, input.big.map(b, input.big.map(c, 1)))",
        "input.big.all(a, input.big.all(b, b == a || true))",
        "input.big.all(a, input.big.all(b, true)) || true",
        "input.big.map(a, input.big + input.big)",
        &format!("[input.big]{}", ".map(a, a + a)".repeat(60)),
        &format!("input.big.map(a, {} in input.big)", 8),
    ] {
        assert_eq!(value(text), Err(EvaluationError::TooManySteps), "{text}");
    }
    assert_eq!(value("size(input.big.map(a, a + 1))"), Ok(json!(2000)));
}

#[test]
fn a_small_expression_makes_no_large_value() {
    let doubled = |part: &str, times: usize| format!("[input.big]{}", part.repeat(times));
    let ones = vec!["1"; 900].join(",");
    for text in [
        // Shared parts, each of which JSON would write in full.
        &doubled(".map(a, [a, a, a, a])", 12),
        &doubled(".map(a, {'x': a, 'y': a, 'z': a})", 12),
        &format!("input.big.map(a, [{ones}])"),
        &format!("input.big.map(a, input.big.map(b, [{}]).size() > 0)", &ones[..1000]),
        &format!("size({})", doubled(".map(a, [a, a, a, a])", 12)),
        &format!("{} == {}", doubled(".map(a, [a, a])", 20), doubled(".map(a, [a, a])", 20)),
    ] {
        assert_eq!(value(text), Err(EvaluationError::TooManySteps), "{text}");
    }
}

#[test]
fn what_is_passed_to_a_function_is_paid_for() {
    let input = Exact::from(json!({"text": "x".repeat(1_000_000), "list": vec![1; 1000]}));
    let null = Exact::default();
    let scope =
        Scope::new(&Values { input: &input, tick: &null, tasks: &[], item: None, event: None }, STEPS_MAX);
    for call in [
        "input.text.contains('y')",
        "input.text < input.text",
        "size(input.text) > 0",
        "bool(input.text.endsWith('y'))",
    ] {
        let looped = Expression::compile(&format!("input.list.filter(a, {call})")).unwrap();
        assert_eq!(looped.value(&scope), Err(EvaluationError::TooManySteps), "{call}");
        let scope = Scope::new(
            &Values { input: &input, tick: &null, tasks: &[], item: None, event: None },
            STEPS_MAX,
        );
        assert!(Expression::compile(call).unwrap().holds(&scope).is_ok(), "{call}");
    }
}

#[test]
fn hostile_texts_of_the_greatest_length_end_in_a_value_or_an_error() {
    let filled = |start: &str, part: &str, end: &str| {
        let room = (TEXT_BYTES_MAX - start.len() - end.len()) / part.len();
        let links =
            part.bytes().filter(|byte| !byte.is_ascii_alphanumeric() && !b"&|,)".contains(byte)).count();
        format!("{start}{}{end}", part.repeat(room.min((LINKS_MAX - 1) / links.max(1))))
    };
    for text in [
        filled("1", "+1", ""),
        filled("1", "<1", ""),
        filled("input", ".a", ""),
        filled("input", "[0]", ""),
        filled("", "!", "true"),
        filled("", "-", "1"),
        filled("", "true?1:", "1"),
        filled("[1]", ".map(a,a)", ""),
        filled("true", "&&true", ""),
        filled("", "(", ""),
        filled("", "@#$", ""),
        format!("{}1{}", "[".repeat(NESTING_MAX), "]".repeat(NESTING_MAX)),
        format!("{}1{}", "[1].map(a,".repeat(NESTING_MAX), ")".repeat(NESTING_MAX)),
    ] {
        match Expression::compile(&text) {
            Ok(expression) => drop(with_scope(|scope| expression.value(scope))),
            Err(error) => assert!(
                matches!(error, InvalidExpression::Syntax { .. } | InvalidExpression::TooDeep),
                "{text}"
            ),
        }
    }
    assert_eq!(invalid(&vec!["1"; 202].join("+")), InvalidExpression::TooComplex { links: 201 });
    let deep = format!("{}1{}", "(".repeat(NESTING_MAX + 1), ")".repeat(NESTING_MAX + 1));
    assert_eq!(invalid(&deep), InvalidExpression::TooDeep);
}

/// Returns the value of an expression over this input, as JSON text.
fn text(input: &str, expression: &str) -> Result<String, EvaluationError> {
    let (input, null) = (Exact::read(input).unwrap(), Exact::default());
    let output = Exact::read("[0.12345678901234567891]").unwrap();
    let tasks = [TaskValue { key: "a", state: Outcome::Succeeded, output: &output }];
    let item = Some(Item { value: &input, index: 0 });
    let scope =
        Scope::new(&Values { input: &input, tick: &null, tasks: &tasks, item, event: None }, STEPS_MAX);
    Expression::compile(expression).unwrap().value(&scope).map(|value| value.to_string())
}

#[test]
fn a_member_keeps_all_digits_of_its_numbers() {
    let input = r#"{"n":100000000000000000001,"rows":[{"price":12345678901234567.89}]}"#;
    for (expression, value) in [
        ("input", input),
        ("item", input),
        ("input.n", "100000000000000000001"),
        ("item['n']", "100000000000000000001"),
        ("input.rows", r#"[{"price":12345678901234567.89}]"#),
        ("input.rows[0].price", "12345678901234567.89"),
        ("tasks.a.output[0]", "0.12345678901234567891"),
        ("tasks['a'].output", "[0.12345678901234567891]"),
        ("tasks.a.state", "\"succeeded\""),
        ("has(input.n)", "true"),
    ] {
        assert_eq!(text(input, expression).as_deref(), Ok(value), "{expression}");
    }
    assert!(text(input, "input.rows[1]").is_err());
    assert!(text(input, "input.rows[-1]").is_err());
    assert!(text(input, "input.none").is_err());
}

#[test]
fn integers_beyond_64_bits_are_handed_on_and_compared_but_not_calculated_with() {
    let input = r#"{"a":100000000000000000001,"b":100000000000000000002,"same":100000000000000000001}"#;
    for (expression, value) in [
        ("[input.a, {'b': input.b}]", r#"[100000000000000000001,{"b":100000000000000000002}]"#),
        ("input.a == input.b", "false"),
        ("input.a == input.same", "true"),
        ("input.a == 5", "false"),
        ("input.a in [input.b, input.same]", "true"),
    ] {
        assert_eq!(text(input, expression).as_deref(), Ok(value), "{expression}");
    }
    let message = text(input, "input.a + 1").unwrap_err().to_string();
    assert!(message.contains("Opaque<integer beyond 64 bits>(100000000000000000001)"), "{message}");
    for expression in ["input.a + 1", "input.a < input.b", "-input.a", "double(input.a)", "string(input.a)"] {
        assert!(matches!(text(input, expression), Err(EvaluationError::Failed { .. })), "{expression}");
    }
}

#[test]
fn a_text_cannot_pretend_to_be_a_number() {
    let refused = Err(EvaluationError::NotJson { given: "a text with the character NUL" });
    assert_eq!(text("{}", r"'\x007'"), refused);
    assert_eq!(text("{}", r"['\u00007', 1]"), refused);
}
