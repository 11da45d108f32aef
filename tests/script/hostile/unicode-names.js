// expects: done "héllo"
function ƒünction() {
    const \u{61}bc = "h\u00e9llo";
    getContext().getResponse().setBody(abc);
}
