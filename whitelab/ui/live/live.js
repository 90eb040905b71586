// The live score follows the hand: scores of every k arrive ahead of it (curve.js), and a moved slider paints from
// them before the server hears of it. One script for the card in the bar and for the strip at the foot of the window.

const VIEWS = new WeakMap()
const THUMB = 16, SURE = 6 // pixels: a slider's knob is wide, and a finger moves until one knows which way it goes

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".wl-live")
  if (!VIEWS.has(root)) VIEWS.set(root, new View(root))
  const view = VIEWS.get(root)
  view.send = k => setStateValue("k", k)
  view.take(data)
  return () => view.close()
}

class View {
  constructor(root) {
    this.root = root
    this.inputs = [...root.querySelectorAll("input")]
    this.moved = null // what the hand has chosen and the server has not yet said
    this.ahead = null // {score, raw} of a layer or variant just chosen, until the server says the same
    this.hear = () => this.paint()
    this.leap = ({ detail }) => this.foresee(detail)
    for (const input of this.inputs) {
      input.addEventListener("input", () => this.move(input.valueAsNumber))
      input.addEventListener("change", () => this.release(input.valueAsNumber))
      input.addEventListener("keydown", ({ key }) => key === "Escape" && this.release(this.data.k)) // as it was
    }
    if (root.matches(".wl-strip")) this.follow(this.inputs[0])
  }

  // What the server says: {k, dim, takes_k, fixed, score, raw, of, words, help, doubt: [low, high, starving, chance,
  // starved]}; `raw` is null where raw itself is shown, `fixed` says why k cannot be moved.
  take(data) {
    this.data = data
    this.ahead = null
    if (this.moved === data.k || data.fixed) this.moved = null
    for (const input of this.inputs) {
      input.max = data.dim
      input.disabled = Boolean(data.fixed)
      input.title = data.fixed || "The top-k eigen-directions."
    }
    this.root.title = data.help
    addEventListener("whitelab-curve", this.hear)
    addEventListener("whitelab-leap", this.leap)
    this.paint()
  }

  // A move other than k's: {of, k, score, raw}, where `of` and `k` say from what setting (ahead.js).
  foresee({ of, k, score, raw }) {
    const known = score !== undefined && of === this.data.of && k === this.data.k && this.moved === null && !this.ahead
    this.ahead = known ? { score, raw } : null
    this.paint()
  }

  move(k) {
    const fits = Number.isInteger(k) && k >= 1 && k <= this.data.dim
    this.moved = fits ? k : this.data.k // of a number half typed, 9 of 9999, say, nothing is left
    this.paint()
  }

  // What is not a k stands for the nearest that is; an empty box for nothing.
  release(k) {
    if (!Number.isNaN(k)) this.moved = Math.min(Math.max(Math.round(k), 1), this.data.dim)
    if (this.moved === this.data.k) this.moved = null
    if (this.moved !== null) this.send(this.moved)
    this.paint()
  }

  // A finger that goes up or down on the strip scrolls the page, which browsers do not do from what is fixed over it;
  // one that goes across the slider moves k, as a tap on it does.
  follow(slider) {
    const page = this.root.closest("[data-testid=stMain]")
    let from = null, way = ""
    const k = x => {
      const box = slider.getBoundingClientRect(), share = (x - box.left - THUMB / 2) / (box.width - THUMB)
      return Math.round(1 + Math.min(Math.max(share, 0), 1) * (this.data.dim - 1))
    }
    this.root.addEventListener("touchstart", event => {
      const { clientX, clientY } = event.touches[0]
      from = event.touches.length > 1 ? null : { x: clientX, y: clientY, scrolled: page.scrollTop }
      way = ""
      if (from) event.preventDefault() // or the slider goes there at once
    }, { passive: false })
    this.root.addEventListener("touchmove", ({ target, touches: [{ clientX, clientY }] }) => {
      if (!from) return
      const across = Math.abs(clientX - from.x), down = clientY - from.y
      if (!way && Math.max(across, Math.abs(down)) > SURE) way = across > Math.abs(down) ? "k" : "page"
      if (way === "page") page.scrollTop = from.scrolled - down
      if (way === "k" && target === slider && !slider.disabled) this.move(k(clientX))
    })
    this.root.addEventListener("touchend", ({ target, changedTouches: [{ clientX }] }) => {
      if (from && way !== "page" && target === slider && !slider.disabled) this.release(k(clientX))
      from = null
    })
    this.root.addEventListener("touchcancel", () => {
      if (way === "k") this.release(this.data.k)
      from = null
    })
  }

  paint() {
    const { words, of, takes_k } = this.data
    const k = this.moved ?? this.data.k
    const known = window.whitelabCurve
    const curve = takes_k && !this.ahead && known && known.of === of ? known.scores : null
    const { raw, score } = this.ahead ?? this.known(k, curve)
    const change = score === undefined || score === null || raw === null ? null : score - raw
    this.root.classList.toggle("wl-waits", score === undefined)
    if (score !== undefined) this.write(".wl-value", score === null ? words : score.toFixed(2))
    const doubt = change === null ? "" : this.doubt(score, k)
    this.write(".wl-change", change === null ? "" : `${signed(change)} ${doubt || "against raw"}`)
    this.root.querySelector(".wl-change").dataset.sign = change === null || doubt ? 0 : Math.sign(Math.round(100 * change))
    this.write(".wl-at", takes_k ? `k = ${k}` : "")
    for (const input of this.inputs)
      if (input.type === "range" || input !== document.activeElement || this.moved === null) input.value = k
    const picture = this.root.querySelector(".wl-curve")
    if (picture) this.draw(picture, curve, k, raw)
  }

  // Undefined where nobody knows yet.
  known(k, curve) {
    return { raw: this.data.raw, score: k === this.data.k ? this.data.score : curve ? curve[k - 1] : undefined }
  }

  // What is to be said of a change that may be chance: known where the server has spoken, about so while k is moved.
  // From the k that is `starving` on a map says nothing.
  doubt(score, k) {
    const [low, high, starving, chance, starved] = (!this.ahead && this.data.doubt) || []
    if (starving && k >= starving) return starved
    return low < score && score < high ? chance : ""
  }

  draw(picture, curve, k, raw) {
    const scores = curve ? curve.filter(score => score !== null) : []
    picture.classList.toggle("wl-empty", scores.length < 2)
    if (scores.length < 2) return
    const all = raw === null ? scores : [...scores, raw]
    const low = Math.min(...all), span = Math.max(...all) - low || 1
    const x = at => ((100 * (at - 1)) / Math.max(this.data.dim - 1, 1)).toFixed(2)
    const y = score => (29 - (28 * (score - low)) / span).toFixed(2)
    if (this.drawn !== curve) {
      const points = curve.flatMap((score, i) => (score === null ? [] : [`${x(i + 1)} ${y(score)}`]))
      picture.querySelector(".wl-line").setAttribute("d", "M" + points.join("L"))
      this.drawn = curve
    }
    for (const end of ["y1", "y2"]) picture.querySelector(".wl-raw").setAttribute(end, raw === null ? -99 : y(raw))
    for (const end of ["x1", "x2"]) picture.querySelector(".wl-here").setAttribute(end, x(k))
  }

  write(part, text) {
    const element = this.root.querySelector(part)
    if (element && element.textContent !== text) element.textContent = text
  }

  close() {
    removeEventListener("whitelab-curve", this.hear)
    removeEventListener("whitelab-leap", this.leap)
  }
}

function signed(change) {
  const text = Math.abs(change).toFixed(2)
  return (change < 0 && Number(text) !== 0 ? "-" : "+") + text
}
