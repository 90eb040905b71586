// Numbers one move on: asked for when a hand reaches for the layers or the variant, shown on the layers' pills, and
// painted by the live score (live.js) at the click that makes the move.

const KNOBS = { layers: ".st-key-layers", whitening: ".st-key-whitening" }
const shared = (window.whitelabAhead ??= { data: null, ask: null })

export default function ({ data, setStateValue }) {
  shared.data = data
  shared.ask = setStateValue
  show()
  if (shared.early && data.knob !== shared.early) setStateValue("wanted", shared.early)
  else if (data.more && shared.had !== known(data)) setStateValue("wanted", data.knob)
  shared.early = null
  shared.had = known(data) // as long as there is more each time
  return () => {
    shared.data = shared.ask = null
    show()
  }
}

if (!shared.listens) {
  shared.listens = true
  for (const kind of ["pointerover", "focusin"]) addEventListener(kind, reach)
  addEventListener("click", leap, { capture: true })
  addEventListener("keydown", event => [" ", "Enter"].includes(event.key) && leap(event), { capture: true })
}

function reach({ target }) {
  const knob = Object.keys(KNOBS).find(name => target.closest?.(KNOBS[name]))
  if (!shared.ask) shared.early = knob ?? null // a hand that was there before the numbers could be asked for
  else if (knob && shared.data.knob !== knob) shared.ask("wanted", knob)
}

function leap({ target }) {
  const pill = target.closest?.(`${KNOBS.layers} button[aria-pressed]`)
  const option = document.querySelector(`${KNOBS.whitening} [aria-expanded=true]`) && target.closest?.("[role=option]")
  const chosen = pill ?? option
  if (!chosen || !shared.data) return
  const { of, k, scores } = shared.data
  const [score, raw] = scores[chosen.innerText.trim()] ?? []
  shared.data = { ...shared.data, scores: {} } // they were about the setting that has just been left
  show()
  dispatchEvent(new CustomEvent("whitelab-leap", { detail: { of, k, score, raw } }))
}

function known({ of, k, knob, scores }) {
  return [of, k, knob, ...Object.keys(scores)].join()
}

function show() {
  for (const pill of document.querySelectorAll(`${KNOBS.layers} button[aria-pressed]`)) {
    const [score] = shared.data?.scores[pill.innerText.trim()] ?? []
    const gain = shared.data?.knob === "layers" && typeof score === "number" ? score - shared.data.now : null
    if (gain === null) delete pill.dataset.gain
    else pill.dataset.gain = (gain < -0.05 ? "-" : "+") + Math.abs(gain).toFixed(1)
  }
}
