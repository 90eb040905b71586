// What Streamlit and Plotly leave to be done for fingers; once a window, whose pages all bring this.
if (!window.whitelabFingers) {
  window.whitelabFingers = true

  // A finger that swipes over a chart scrolls the page: Plotly would keep the touch to zoom with. A tap still reaches
  // the chart, as the click that the browser makes of it.
  addEventListener(
    "touchstart",
    event => event.target.closest?.(".js-plotly-plot .draglayer") && event.stopPropagation(),
    { capture: true, passive: true },
  )
}
