// A grid of cells to draw on with mouse, finger or keys. `cells` holds 0 for paper, else the number of the pen.
const { rows, cols, stamps, brush } = props.setup;
const canvas = element.querySelector('canvas');
const said = element.querySelector('[aria-live]');
const context = canvas.getContext('2d');
const SCALE = Math.max(4, Math.floor(480 / Math.max(rows, cols)));
const INKS = ['#ffffff', '#1a1a1a', '#8a8a8a'];
canvas.width = cols * SCALE;
canvas.height = rows * SCALE;

let cells = Array(rows * cols).fill(0);
let past = [];
let cursor = { row: rows >> 1, col: cols >> 1 };
let hover = null;
let drawing = null;
let due = null;

const tool = () => element.querySelector('input[name=tn-tool]:checked').value;
const inside = (row, col) => row >= 0 && col >= 0 && row < rows && col < cols;

function footprint(row, col) {
  const [kind, which] = tool().split(':');
  if (kind === 'stamp') {
    const mask = stamps[Number(which)].mask;
    const height = mask.length, width = mask[0].length;
    const top = Math.min(Math.max(row - (height >> 1), 0), rows - height);
    const left = Math.min(Math.max(col - (width >> 1), 0), cols - width);
    return mask.flatMap((line, r) => line.flatMap((on, c) => (on ? [[top + r, left + c]] : [])));
  }
  if (brush === 1) return [[row, col]];
  return [[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]].map(([r, c]) => [row + r, col + c]).filter(([r, c]) => inside(r, c));
}

function value() {
  const [kind, which] = tool().split(':');
  return kind === 'eraser' ? 0 : kind === 'pen' ? Number(which) : 1;
}

function put(row, col, ink = value()) {
  for (const [r, c] of footprint(row, col)) cells[r * cols + c] = ink;
}

function draw() {
  context.fillStyle = INKS[0];
  context.fillRect(0, 0, canvas.width, canvas.height);
  cells.forEach((ink, i) => {
    if (!ink) return;
    context.fillStyle = INKS[ink];
    context.fillRect((i % cols) * SCALE, Math.floor(i / cols) * SCALE, SCALE, SCALE);
  });
  context.strokeStyle = 'rgba(120,120,120,.28)';
  context.lineWidth = 1;
  context.beginPath();
  for (let c = 1; c < cols; c++) { context.moveTo(c * SCALE + .5, 0); context.lineTo(c * SCALE + .5, canvas.height); }
  for (let r = 1; r < rows; r++) { context.moveTo(0, r * SCALE + .5); context.lineTo(canvas.width, r * SCALE + .5); }
  context.stroke();
  const at = !hover && canvas.matches(':focus-visible') ? cursor : hover;
  if (!at) return;
  context.fillStyle = 'rgba(37,99,235,.30)';
  for (const [r, c] of footprint(at.row, at.col)) context.fillRect(c * SCALE, r * SCALE, SCALE, SCALE);
  context.strokeStyle = '#2563eb';
  context.lineWidth = 2;
  context.strokeRect(at.col * SCALE + 1, at.row * SCALE + 1, SCALE - 2, SCALE - 2);
}

function send() {
  clearTimeout(due);
  due = setTimeout(() => trigger('draw', { cells: cells.join('') }), 120);
  const count = cells.filter(Boolean).length;
  canvas.dataset.inked = count;
  said.textContent = `${count} cells drawn`;
}

const keep = () => { past.push(cells.slice()); past = past.slice(-50); };

function place(event) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top) / box.height * rows);
  const col = Math.floor((event.clientX - box.left) / box.width * cols);
  return { row: Math.min(Math.max(row, 0), rows - 1), col: Math.min(Math.max(col, 0), cols - 1) };
}

function line(from, to) {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.col - from.col), 1);
  for (let s = 0; s <= steps; s++) {
    put(Math.round(from.row + (to.row - from.row) * s / steps), Math.round(from.col + (to.col - from.col) * s / steps), drawing.ink);
  }
}

canvas.addEventListener('pointerdown', (event) => {
  if (event.button) return;
  const at = place(event);
  keep();
  const [kind] = tool().split(':');
  // A pen that starts on its own ink erases, so one finger can do both.
  const ink = kind === 'pen' && cells[at.row * cols + at.col] === value() ? 0 : value();
  drawing = { ink, last: at, stamp: kind === 'stamp' };
  put(at.row, at.col, ink);
  cursor = hover = at;
  canvas.setPointerCapture(event.pointerId);
  draw();
});
canvas.addEventListener('pointermove', (event) => {
  hover = place(event);
  if (drawing && !drawing.stamp) { line(drawing.last, hover); drawing.last = cursor = hover; }
  draw();
});
const end = () => { if (drawing) { drawing = null; send(); } };
canvas.addEventListener('pointerup', end);
canvas.addEventListener('pointercancel', end);
canvas.addEventListener('pointerleave', () => { hover = null; draw(); });
canvas.addEventListener('focus', draw);
canvas.addEventListener('blur', draw);
canvas.addEventListener('keydown', (event) => {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const at = cursor.row * cols + cursor.col;
  hover = null;
  if (move) {
    const row = cursor.row + move[0], col = cursor.col + move[1];
    if (inside(row, col)) cursor = { row, col };
    said.textContent = `row ${cursor.row + 1}, column ${cursor.col + 1}, ${cells[cursor.row * cols + cursor.col] ? 'drawn' : 'empty'}`;
  } else if (event.key === ' ' || event.key === 'Enter') {
    keep();
    put(cursor.row, cursor.col, tool().startsWith('pen') && cells[at] === value() ? 0 : value());
    send();
  } else if (event.key === 'Delete' || event.key === 'Backspace') {
    keep();
    cells[at] = 0;
    send();
  } else return;
  event.preventDefault();
  draw();
});
element.querySelector('[data-do=undo]').addEventListener('click', () => {
  if (past.length) { cells = past.pop(); draw(); send(); }
});
element.querySelector('[data-do=clear]').addEventListener('click', () => {
  keep();
  cells.fill(0);
  draw();
  send();
});
watch('value', () => {
  if (typeof props.value !== 'string' || props.value.length !== cells.length) return;
  keep();
  cells = Array.from(props.value, Number);
  canvas.dataset.inked = cells.filter(Boolean).length;
  draw();
});
draw();
