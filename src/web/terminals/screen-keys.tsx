import { type ScreenKey, screenKeys } from './keys.ts'

const names: Partial<Record<ScreenKey, string>> = {
  '←': 'Left',
  '↑': 'Up',
  '↓': 'Down',
  '→': 'Right',
}

interface ScreenKeysProps {
  /** Ctrl is held for the next key. */
  isCtrl: boolean
  onCtrl: (isHeld: boolean) => void
  onKey: (key: ScreenKey) => void
}

/** Keys that a phone lacks. They leave the focus where it is: its keyboard would close. */
export function ScreenKeys({ isCtrl, onCtrl, onKey }: ScreenKeysProps) {
  return (
    <div
      class="keys"
      role="group"
      aria-label="Keys"
      onPointerDown={(event) => event.preventDefault()}
      onMouseDown={(event) => event.preventDefault()}
    >
      <button type="button" aria-pressed={isCtrl} onClick={() => onCtrl(!isCtrl)}>
        Ctrl
      </button>
      {screenKeys.map((key) => (
        <button key={key} type="button" aria-label={names[key] ?? key} onClick={() => onKey(key)}>
          {key}
        </button>
      ))}
    </div>
  )
}
