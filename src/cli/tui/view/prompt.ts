import type { Key } from '../screen/screen.ts'

/** No text that is looked for is longer. */
const longest = 200

export class Prompt {
  readonly label: string
  text: string

  constructor(label: string, text = '') {
    this.label = label
    this.text = text
  }

  /** `done` with Enter, `left` with Escape or a Backspace too many. */
  key({ name, text }: Key): 'typed' | 'done' | 'left' {
    if (name === 'enter') return 'done'
    if (name === 'escape' || name === 'C-c') return 'left'
    if (name === 'backspace') {
      if (this.text === '') return 'left'
      this.text = this.text.replace(/.$/su, '')
    } else if (name === 'C-u') this.text = ''
    else if (name === 'C-w') this.text = this.text.trimEnd().replace(/(?<!\S)\S+$/, '')
    else if (text !== null && this.text.length < longest) this.text += text
    return 'typed'
  }
}
