/**
 * An animated GIF (89a) from frames of pixels. Colours are rounded until 256 suffice.
 *
 * @typedef {{pixels: Uint8ClampedArray, milliseconds: number}} Frame four bytes a pixel
 */

/** Colours of all frames, at most 256, and each frame as indices into them. @param {Frame[]} frames */
function indexed(frames) {
  for (let step = 4; ; step *= 2) {
    /** @type {Map<number, number>} */
    const palette = new Map()
    const near = (/** @type {number} */ value) => Math.min(255, Math.round(value / step) * step)
    const images = frames.map(({ pixels }) => {
      const image = new Uint8Array(pixels.length / 4)
      for (let at = 0; at < image.length && palette.size <= 256; at++) {
        const colour = (near(pixels[4 * at]) << 16) | (near(pixels[4 * at + 1]) << 8) | near(pixels[4 * at + 2])
        let index = palette.get(colour)
        if (index === undefined) palette.set(colour, (index = palette.size))
        image[at] = index
      }
      return image
    })
    if (palette.size <= 256) return { palette: [...palette.keys()], images }
  }
}

/** LZW with codes that grow from 9 to 12 bits, in blocks of at most 255 bytes. @param {Uint8Array} image */
function compressed(image) {
  const CLEAR = 256, END = 257
  /** @type {number[]} */
  const bytes = []
  let bits = 0, count = 0
  let width = 9, next = END + 1
  /** @type {Map<number, number>} */
  let codes = new Map()
  const write = (/** @type {number} */ code) => {
    bits |= code << count
    for (count += width; count >= 8; count -= 8, bits >>>= 8) bytes.push(bits & 255)
  }
  write(CLEAR)
  let prefix = image[0]
  for (let at = 1; at < image.length; at++) {
    const key = (prefix << 8) | image[at], known = codes.get(key)
    if (known !== undefined) {
      prefix = known
      continue
    }
    write(prefix)
    if (next < 4096) {
      codes.set(key, next)
      if (next === 1 << width) width += 1
      next += 1
    } else {
      write(CLEAR)
      codes = new Map()
      width = 9
      next = END + 1
    }
    prefix = image[at]
  }
  write(prefix)
  write(END)
  if (count) bytes.push(bits & 255)
  const out = [8]
  for (let at = 0; at < bytes.length; at += 255) {
    const block = bytes.slice(at, at + 255)
    out.push(block.length, ...block)
  }
  return [...out, 0]
}

const word = (/** @type {number} */ value) => [value & 255, value >> 8]
const text = (/** @type {string} */ letters) => [...new TextEncoder().encode(letters)]

/** The bytes of a GIF that repeats for ever. @param {Frame[]} frames @param {number} width @param {number} height */
export function encodeGif(frames, width, height) {
  const { palette, images } = indexed(frames)
  const table = Array.from({ length: 256 }, (_, i) => palette[i] ?? 0).flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255])
  const parts = [
    [...text('GIF89a'), ...word(width), ...word(height), 0xf7, 0, 0, ...table],
    [0x21, 0xff, 11, ...text('NETSCAPE2.0'), 3, 1, 0, 0, 0],
    ...images.flatMap((image, i) => [
      [0x21, 0xf9, 4, 4, ...word(Math.round(frames[i].milliseconds / 10)), 0, 0],
      [0x2c, 0, 0, 0, 0, ...word(width), ...word(height), 0],
      compressed(image),
    ]),
    [0x3b],
  ]
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0)
  return bytes
}
