raise ImportError("the whole package asks for more than is installed")
