// expects: fault Request size is too large
function f() {
    __.createDocument(__.getSelfLink(), { x: "x".repeat(9e6) });
}
