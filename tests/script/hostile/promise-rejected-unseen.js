// expects: fault Exception = Error: unseen
function f() {
    Promise.reject(new Error("unseen"));
}
