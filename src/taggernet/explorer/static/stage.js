// Groups and iterations are buttons inside the stage. Focus survives the redrawing that a press causes.
let focused = null;
element.addEventListener('focusin', (event) => { focused = event.target.dataset?.focus ?? null; });
element.addEventListener('focusout', (event) => { if (event.relatedTarget) focused = null; });
element.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  focused = button.dataset.focus;
  if (button.dataset.group !== undefined) trigger('group', { number: Number(button.dataset.group) });
  if (button.dataset.iteration !== undefined) trigger('frame', { number: Number(button.dataset.iteration) });
});
const follow = () => {
  const film = element.querySelector('.tn-film');
  const frame = film?.querySelector('[aria-current]');
  if (frame) film.scrollLeft = frame.offsetLeft - film.offsetLeft - (film.clientWidth - frame.clientWidth) / 2;
};
follow();
watch('value', () => {
  follow();
  if (!focused) return;
  const button = element.querySelector(`[data-focus="${focused}"]`);
  if (button && document.activeElement !== button) button.focus({ preventScroll: true });
});
