import { createStore, readStored, writeStored } from './store.ts'

const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const key = 'rsm.theme'
const darkSystem = matchMedia('(prefers-color-scheme: dark)')

export const theme = createStore<Theme>(
  themes.find((known) => known === readStored(localStorage, key)) ?? 'system',
)
/** The theme in effect, from the system if none was chosen. */
export const isDark = createStore(false)

function applyTheme(): void {
  const chosen = theme.get()
  isDark.set(chosen === 'system' ? darkSystem.matches : chosen === 'dark')
  document.documentElement.dataset.theme = isDark.get() ? 'dark' : 'light'
}

darkSystem.addEventListener('change', applyTheme)
theme.subscribe(() => {
  writeStored(localStorage, key, theme.get())
  applyTheme()
})
applyTheme()

export function nextTheme(now: Theme): Theme {
  return themes[(themes.indexOf(now) + 1) % themes.length] ?? 'system'
}
