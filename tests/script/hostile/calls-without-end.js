// expects: stopped
function f() {
    for (;;) __.createDocument(__.getSelfLink(), { x: 1 });
}
