import '@xterm/xterm/css/xterm.css'
import './style.css'
import { render } from 'preact'
import { App } from './app.tsx'

/**
 * Lets xterm.js add style sheets and style attributes. The page's policy refuses them without the response's
 * nonce, or unless they are set through the object model (CSP Level 3 §8.4).
 */
function admitOwnStyles(): void {
  const nonce = document.querySelector<HTMLElement>('script[src]')?.nonce ?? ''
  const createElement = document.createElement.bind(document)
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = createElement(name, options)
    if (element instanceof HTMLStyleElement) element.nonce = nonce
    return element
  }

  const setAttribute: (name: string, value: string) => void = Reflect.get(Element.prototype, 'setAttribute')
  Element.prototype.setAttribute = function (this: Element, name: string, value: string) {
    if (name === 'style' && this instanceof HTMLElement) this.style.cssText = value
    else setAttribute.call(this, name, value)
  }
}

admitOwnStyles()
const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
