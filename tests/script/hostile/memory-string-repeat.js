// expects: any
function f() {
    "a".repeat(2 ** 29).toUpperCase();
}
