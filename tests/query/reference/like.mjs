// like.mjs — x LIKE pattern ESCAPE "c": % is any text, _ any character, [abc] and [a-f] one of these, [^abc] none of these.

export function like(text, pattern, escape) {
  if (typeof text !== "string" || typeof pattern !== "string") return undefined;
  return matches([...text], steps([...pattern], escape));
}

// A pattern as steps: { any } for %, or a test of one character.
function steps(pattern, escape) {
  const found = [];
  for (let i = 0; i < pattern.length; i++) {
    const one = pattern[i];
    const close = pattern.indexOf("]", i + (pattern[i + 1] === "^" ? 3 : 2));
    if (one === escape && i + 1 < pattern.length) {
      const literal = pattern[++i];
      found.push((c) => c === literal);
    } else if (one === "%") {
      found.push("any");
    } else if (one === "_") {
      found.push(() => true);
    } else if (one === "[" && close > 0) {
      found.push(set(pattern.slice(i + 1, close)));
      i = close;
    } else {
      found.push((c) => c === one);
    }
  }
  return found;
}

function set(members) {
  const negated = members[0] === "^" && members.length > 1;
  const rest = negated ? members.slice(1) : members;
  const tests = [];
  for (let i = 0; i < rest.length; i++) {
    const [low, dash, high] = rest.slice(i, i + 3);
    if (dash === "-" && high !== undefined) {
      tests.push((c) => c >= low && c <= high);
      i += 2;
    } else {
      tests.push((c) => c === low);
    }
  }
  return (c) => tests.some((test) => test(c)) !== negated;
}

// Step by step: the set of prefix lengths of the text that the steps so far can match.
function matches(text, found) {
  let reached = new Set([0]);
  for (const step of found) {
    const next = new Set();
    for (const at of reached) {
      if (step === "any") for (let i = at; i <= text.length; i++) next.add(i);
      else if (at < text.length && step(text[at])) next.add(at + 1);
    }
    reached = next;
  }
  return reached.has(text.length);
}
