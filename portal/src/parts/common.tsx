// Small parts that several views use.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ApiError } from "../api";
import { text } from "../i18n";

export function Panel({ title, about, actions, children }: { title: string; about?: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {about && <p class="about">{about}</p>}
      {children}
    </section>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export const Notice = ({ kind, children }: { kind: "warning" | "error" | "good" | "plain"; children: ComponentChildren }) => (
  <p class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
    {children}
  </p>
);

export function problemText(problem: unknown): string {
  if (problem instanceof ApiError) return problem.code === "Offline" ? text("serverOffline") : problem.message;
  return problem instanceof Error ? problem.message : String(problem);
}

// A choice of a few, as buttons side by side.
export function Segments<T extends string>({ label, value, choices, onChoose }: { label: string; value: T; choices: [T, string][]; onChoose: (value: T) => void }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {choices.map(([choice, name]) => (
        <button type="button" key={choice} data-choice={choice} aria-pressed={value === choice} onClick={() => onChoose(choice)}>
          {name}
        </button>
      ))}
    </div>
  );
}

export const Problem = ({ of }: { of: unknown }) => (of ? <Notice kind="error">{problemText(of)}</Notice> : null);

// A result that is read again when one of `about` changes.
export function useRead<T>(read: () => Promise<T>, about: unknown[]) {
  const value = useSignal<T | undefined>(undefined);
  const problem = useSignal<unknown>(undefined);
  const again = useSignal(0);
  useEffect(() => {
    let current = true;
    read().then(
      (found) => {
        if (!current) return;
        value.value = found;
        problem.value = undefined;
      },
      (why: unknown) => current && (problem.value = why),
    );
    return () => void (current = false);
  }, [...about, again.value]);
  return { value, problem, refresh: () => void again.value++ };
}

// A view that is loaded when it is first shown.
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let found: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const loaded = useSignal(found !== undefined);
    useEffect(() => {
      if (!found) void load().then((view) => ((found = view), (loaded.value = true)));
    }, []);
    const View = loaded.value ? found : undefined;
    return View ? <View {...props} /> : <p class="about">{text("loading")}</p>;
  };
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} onClose={onClose} aria-label={title}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" onClick={() => element.current?.close()}>
          {text("close")}
        </button>
      </header>
      {children}
    </dialog>
  );
}
