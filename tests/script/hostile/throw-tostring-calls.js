// expects: fault Exception = Error: called false
function f() {
    throw Object.assign(new Error(""), { get message() { return "x"; } }, {
        message: { toString: () => "called " + __.createDocument(__.getSelfLink(), {}) },
    });
}
