import type { Page } from 'playwright-core'

/** Finds words that are broken although they fit in one line, and elements that make the page wider than its window. */
const look = `(() => {
  const found = []
  const walker = document.createTreeWalker(document.querySelector('#app'), NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode
    const box = node.parentElement.closest('td, th, li, p, h1, h2, dd, div, button, a')
    if (box === null || node.parentElement.closest('pre, .text, .xterm') !== null) continue
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange()
      range.setStart(node, word.index)
      range.setEnd(node, word.index + word[0].length)
      const rects = [...range.getClientRects()].filter((rect) => rect.width > 0)
      // Text with an ellipsis has two boxes in one line.
      if (new Set(rects.map((rect) => rect.top)).size < 2) continue
      const width = rects.reduce((sum, rect) => sum + rect.width, 0)
      if (width <= box.clientWidth) found.push(word[0] + ' is broken')
    }
  }
  for (const one of [document.documentElement, document.querySelector('main')]) {
    if (one.scrollWidth <= one.clientWidth) continue
    const wide = [...one.querySelectorAll('*')].filter((part) => part.getBoundingClientRect().right > one.clientWidth)
    found.push(one.tagName + ' scrolls sideways, by ' + wide.map((part) => part.tagName + '.' + part.className).slice(0, 5).join(' '))
  }
  for (const one of document.querySelectorAll('button, a, input, select, textarea')) {
    const rect = one.getBoundingClientRect()
    if (rect.width > 0 && one.closest('.terminals, .skip') === null && (rect.right > innerWidth + 1 || rect.left < -1))
      found.push((one.textContent || one.ariaLabel || one.name) + ' is cut')
  }
  return found
})()`

/** Broken, cut or too wide parts of the page as it is drawn now; empty if there are none. */
export function faultsOfLook(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(look)
}
