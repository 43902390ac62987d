import '@xterm/xterm/css/xterm.css'
import './style.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { admitOwnStyles } from './own-styles.ts'

admitOwnStyles()
const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
