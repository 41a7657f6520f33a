import { LoaderCircle } from "lucide-react";
import styles from "./spinner.module.css";

/** Beside the word for what is going on. */
export const Spinner = () => <LoaderCircle aria-hidden size={14} className={styles.spinner} />;
