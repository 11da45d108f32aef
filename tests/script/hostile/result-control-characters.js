// expects: done "\u0000\u0001\"\\\u001f"
function f() {
    getContext().getResponse().setBody("\0\x01\"\\\x1f");
}
