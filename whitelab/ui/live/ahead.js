// Numbers one move on: asked for when a hand reaches for the layers or the variant, shown on the layers' pills, and
// painted by the live score (live.js) at the click that makes the move.

const KNOBS = { layers: ".st-key-layers", whitening: ".st-key-whitening" }
const REST = 100 // ms without an act of the visitor's before anything is asked for
const ACTS = ["pointerdown", "pointerup", "click", "keydown", "input"]
const shared = (window.whitelabAhead ??= { data: null, ask: null, acted: 0 })

export default function ({ data, setStateValue }) {
  shared.data = data
  shared.ask = setStateValue
  show()
  if (shared.early && data.knob !== shared.early) want(shared.early)
  else if (data.more && shared.had !== known(data)) want(data.knob)
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
  for (const kind of ACTS) addEventListener(kind, act, { capture: true })
  addEventListener("click", leap, { capture: true })
  addEventListener("keydown", event => [" ", "Enter"].includes(event.key) && leap(event), { capture: true })
}

function reach({ target }) {
  const knob = Object.keys(KNOBS).find(name => target.closest?.(KNOBS[name]))
  if (!shared.ask) shared.early = knob ?? null // a hand that was there before the numbers could be asked for
  else if (knob && shared.data.knob !== knob) want(knob)
}

// Streamlit sends what changes within one turn of the event loop together, and where one part is a fragment's it runs
// that alone: a click in the same turn would be lost. So nothing is asked for beside an act, and an act waits its turn.
function want(knob) {
  clearTimeout(shared.timer)
  shared.timer = setTimeout(() => {
    if (performance.now() - shared.acted < REST) return want(knob)
    if (!shared.ask) return void (shared.early = knob)
    shared.ask("wanted", knob)
    shared.asking = true
    setTimeout(() => (shared.asking = false)) // after Streamlit's own, which it has begun before
  }, REST)
}

function act(event) {
  shared.acted = performance.now()
  if (!shared.asking || !event.isTrusted || event.type !== "click") return
  event.stopImmediatePropagation()
  event.preventDefault()
  setTimeout(() => event.target.dispatchEvent(new MouseEvent("click", event)))
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
